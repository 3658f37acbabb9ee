"""The kernels of one forward pass, layer by layer, in the words of an engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from roundline.simulate.costs import KernelCosts
from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.ops import SIDE_LANE, KernelName, Op
from roundline.simulate.shapes import Experts, GatedDeltaNet, Matrix, ModelShape

_ACTIVATION_BYTES: Final = 2
_LOGIT_BYTES: Final = 2


@dataclass(frozen=True, kw_only=True)
class Forward:
    """Passes of one model with a fixed number of rows.

    Attributes:
        rows: tokens of all sequences together (M of the GEMMs).
        batch: sequences.
        context: tokens in the KV cache of each sequence.
        mode: what the rows are: one new token each, drafts to verify, or a prompt.
        side_stream: run the small input projection of a GDN layer beside the large one.
        overlap_ns: programmatic dependent launch between neighbours.
        fc_sharded: the MTP projection is split over ranks and gathered, not replicated.
    """

    dialect: Dialect
    costs: KernelCosts
    model: ModelShape
    tp: int
    rows: int
    batch: int
    context: int
    mode: Mode
    side_stream: bool = False
    overlap_ns: int = 0
    fc_sharded: bool = False

    @property
    def state_passes(self) -> int:
        """Recurrent states that one layer moves per sequence: verification keeps every step."""
        return 1 + self.rows // self.batch if self.mode == "verify" else 2

    def target(self) -> list[Op]:
        """The whole target model, from the embedding to logits in float."""
        return self.body() + self.head()

    def body(self) -> list[Op]:
        """The target model up to the final norm."""
        ops = self.embedding()
        for layer in range(len(self.model.layers)):
            ops += self.layer(layer)
        return ops + self.small(self.dialect.final_norm)

    def embedding(self) -> list[Op]:
        """Token embedding; the vocabulary is sharded, so ranks add up their rows."""
        return self.small(self.dialect.embedding) + self._all_reduce()

    def layer(self, index: int) -> list[Op]:
        """One decoder layer of the target."""
        ops = self.small(self.dialect.add_norm if index else self.dialect.first_norm)
        ops += self._gdn() if self.model.layers[index] == "gdn" else self._attention()
        ops += self.small(self.dialect.add_norm) + self._feed_forward()
        return [replace(op, layer=index) for op in ops]

    def head(self) -> list[Op]:
        """Vocabulary projection, gathered over ranks and cast to float."""
        ops = self._gemm(self.model.lm_head(self.tp))
        if self.tp > 1:
            size_bytes = self.rows * self.model.vocabulary * _LOGIT_BYTES
            ops.append(self.collective(self.dialect.all_gather, size_bytes))
        return ops + self.small(self.dialect.cast)

    def mtp(self) -> list[Op]:
        """One pass of an MTP layer: embedding, projection, one layer, norm, shared head."""
        dialect = self.dialect
        ops = self.embedding() + self.small(dialect.first_norm * 2)
        ops += self.small(dialect.concatenate) + self._projection()
        ops += self.small(dialect.first_norm) + self._attention()
        ops += self.small(dialect.add_norm) + self._feed_forward()
        return ops + self.small(dialect.final_norm) + self.head()

    def draft_pass(self) -> list[Op]:
        """One pass of whatever drafts: the MTP layer where the model has one, else all layers."""
        return self.mtp() if self.model.has_mtp else self.target()

    def small(self, names: Iterable[KernelName]) -> list[Op]:
        """Kernels whose cost is their launch, in order."""
        return [
            Op(
                name=name.name,
                category=name.category,
                api=name.api,
                duration_ns=self.costs.small_ns(name.category, self.rows),
                grid=(self.rows, 1, 1),
                overlap_ns=self.overlap_ns,
            )
            for name in names
        ]

    def moving(self, names: Names, size_bytes: int, base_ns: int = 0) -> list[Op]:
        """Kernels that share the moving of `size_bytes` of state or cache."""
        share = size_bytes // max(1, len(names))
        return [
            Op(
                name=name.name,
                category=name.category,
                api=name.api,
                duration_ns=base_ns + self.costs.stream_ns(name.category, share),
                grid=(self.batch, self.model.attention.kv_heads, 1),
                overlap_ns=self.overlap_ns,
            )
            for name in names
        ]

    def collective(self, name: KernelName, size_bytes: int) -> Op:
        """An exchange of `size_bytes` between the ranks."""
        return Op(
            name=name.name,
            category=name.category,
            api=name.api,
            duration_ns=self.costs.collective_ns(size_bytes),
            grid=(2, 1, 1),
            block=(512, 1, 1),
        )

    def _projection(self) -> list[Op]:
        if not self.fc_sharded or self.tp == 1:
            return self._gemm(self.model.fc())
        share = Matrix("fc", 2 * self.model.hidden, self.model.hidden // self.tp)
        size_bytes = self.rows * self.model.hidden * _ACTIVATION_BYTES
        return [*self._gemm(share), self.collective(self.dialect.all_gather, size_bytes)]

    def _attention(self) -> list[Op]:
        attention = self.model.attention
        kv_bytes = self.batch * self.context * attention.kv_bytes_per_token(self.tp)
        ops = self._gemm(attention.qkv(self.model.hidden, self.tp))
        if self.model.qk_norm:
            ops += self.small(self.dialect.qk_norm)
        ops += self.small(self.dialect.rope) + self.small(self.dialect.kv_write)
        ops += self.moving(self.dialect.attention(self.mode), kv_bytes, base_ns=5_000)
        if attention.gated:
            ops += self.small(self.dialect.gate)
        return ops + self._gemm(attention.output(self.model.hidden, self.tp)) + self._all_reduce()

    def _gdn(self) -> list[Op]:
        gdn = self.model.gdn
        assert gdn is not None, "a model with GDN layers has their shape"
        state_bytes = self.batch * self.state_passes * gdn.state_bytes(self.tp)
        first, *prologue = self.small(self.dialect.gdn_prologue(self.mode))
        ops = self._gdn_inputs(gdn)
        ops += [replace(first, joins=self.side_stream), *prologue]
        ops += self.moving(self.dialect.recurrent(self.mode), state_bytes)
        ops += self.small(self.dialect.gated_norm)
        return ops + self._gemm(gdn.output(self.model.hidden, self.tp)) + self._all_reduce()

    def _gdn_inputs(self, gdn: GatedDeltaNet) -> list[Op]:
        large = self._gemm(gdn.qkvz(self.model.hidden, self.tp))
        small = self._gemm(gdn.ba(self.model.hidden, self.tp))
        if not self.side_stream:
            return large + small
        return [replace(op, lane=SIDE_LANE, overlap_ns=0) for op in small] + large

    def _feed_forward(self) -> list[Op]:
        if self.model.experts is not None:
            return self._sparse(self.model.experts)
        ops = self._gemm(self.model.gate_up(self.tp)) + self.small(self.dialect.activation)
        return ops + self._gemm(self.model.down(self.tp)) + self._all_reduce()

    def _sparse(self, experts: Experts) -> list[Op]:
        hidden, width = self.model.hidden, experts.intermediate // self.tp
        read = experts.distinct(self.rows)
        ops = self._gemm(Matrix("router", hidden, experts.count))
        ops += self.small(self.dialect.route)
        ops += self._expert_gemm(Matrix("experts", hidden, 2 * width, read))
        ops += self.small(self.dialect.activation)
        ops += self._expert_gemm(Matrix("experts", width, hidden, read))
        ops += self.small(self.dialect.after_experts)
        if experts.shared_intermediate:
            ops += self._shared_expert(experts.shared_intermediate // self.tp)
        return ops + self._all_reduce()

    def _shared_expert(self, width: int) -> list[Op]:
        ops = self._gemm(Matrix("shared_gate_up", self.model.hidden, 2 * width))
        ops += self.small(self.dialect.activation)
        ops += self._gemm(Matrix("shared_down", width, self.model.hidden))
        return ops + self.small(self.dialect.shared_gate)

    def _expert_gemm(self, matrix: Matrix) -> list[Op]:
        return self._weight_read(self.dialect.expert_gemm, matrix)

    def _gemm(self, matrix: Matrix) -> list[Op]:
        return self._weight_read(self.dialect.gemm(self.rows, matrix), matrix)

    def _weight_read(self, names: Names, matrix: Matrix) -> list[Op]:
        first, *finish = names
        read = Op(
            name=first.name,
            category=first.category,
            api=first.api,
            duration_ns=self.costs.gemm_ns(matrix),
            matrix=matrix.name,
            grid=(max(1, matrix.n // 64), max(1, self.rows // 64), 1),
            overlap_ns=self.overlap_ns,
        )
        finishing = [replace(op, matrix=matrix.name) for op in self.small(finish)]
        return [*self.small(self.dialect.before_gemm), read, *finishing]

    def _all_reduce(self) -> list[Op]:
        if self.tp == 1:
            return []
        size_bytes = self.rows * self.model.hidden * _ACTIVATION_BYTES
        return [self.collective(self.dialect.all_reduce, size_bytes)]
