"""The floor of one decode round: what it must read, term by term, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from roundline.bandwidth import assumptions
from roundline.bandwidth.architecture import Architecture, Draft, Layer, WeightMatrix
from roundline.bandwidth.communication import LinkCosts, default_costs, default_link
from roundline.bandwidth.efficiency import Efficiency, default_efficiency
from roundline.bandwidth.hardware import Gpu
from roundline.bandwidth.prediction import (
    DraftPass,
    GemmCount,
    RoundCounts,
    RoundFloor,
    Term,
)
from roundline.bandwidth.pricing import Cost, Pricing
from roundline.bandwidth.quantization import WeightFormat
from roundline.bandwidth.shapes import Parallelism
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload
from roundline.errors import UsageError

__all__ = [
    "DraftPass", "GemmCount", "RoundCounts", "RoundFloor", "Term", "Workload", "predict",
]  # fmt: skip

ACTIVATION_BYTES: Final = 2  # bf16 hidden vectors and logits


def predict(
    model: Architecture,
    gpu: Gpu,
    workload: Workload,
    switches: EngineSwitches,
    efficiency: Efficiency | None = None,
    links: LinkCosts | None = None,
) -> RoundFloor:
    """Predict one decode round on one of the workload's GPUs.

    Args:
        model: shapes and formats; `model.draft` is what drafts.
        gpu: peak bandwidth and memory.
        workload: batch, context, draft steps, parallelism.
        switches: what the engine decides.
        efficiency: fractions of peak and latencies; by kind of memory if None.
        links: costs of the collectives; nearest public measurement if None.

    Raises:
        UsageError: a degree does not divide a dimension, or there is nothing to draft with.
    """
    if workload.draft_passes and model.draft is None:
        raise UsageError(
            f"{model.name} has no draft layer for --draft-steps {workload.draft_steps}: give "
            "--draft-model, or --drafter ngram, or --draft-steps 0"
        )
    return _Round(
        model, gpu, workload, switches,
        efficiency or default_efficiency(gpu), links or _links(gpu, workload, switches),
    ).floor()  # fmt: skip


def _links(gpu: Gpu, workload: Workload, switches: EngineSwitches) -> LinkCosts | None:
    gpus, link = workload.parallel.tp, default_link(gpu)
    if gpus == 1:
        return None
    # Custom all-reduces need NVLink between all GPUs, or exactly two GPUs.
    kernel = switches.collective_kernel if link == "nvlink" or gpus == 2 else "nccl"
    return default_costs(gpus, link, kernel)


@dataclass(frozen=True)
class _Round:
    model: Architecture
    gpu: Gpu
    workload: Workload
    switches: EngineSwitches
    efficiency: Efficiency
    links: LinkCosts | None

    def floor(self) -> RoundFloor:
        passes = self._draft_passes()
        terms = [
            *self._target_terms(),
            _term("draft", _sum(cost for _, parts in passes for cost in parts.values())),
        ]
        return RoundFloor(
            model=self.model,
            gpu=self.gpu,
            workload=self.workload,
            switches=self.switches,
            efficiency=self.efficiency,
            links=self.links,
            terms=tuple(terms),
            draft_passes=tuple(
                DraftPass(step, tokens, tuple(_term(n, c) for n, c in parts.items()))
                for step, (tokens, parts) in enumerate(passes, 1)
            ),
            matrices=self.matrices,
            counts=self._counts(),
            state_bytes=self._state_bytes(self.model.layers),
            conv_state_bytes=self._conv_state_bytes(self.model.layers),
            state_passes=self.state_passes,
            kv_bytes_per_token=self._kv_bytes(self.model.layers, 1),
            resident_bytes=self._resident_bytes(),
            all_parameter_bytes=self._all_parameter_bytes(),
            assumptions=tuple(
                assumptions.sentences(
                    self.model, self.gpu, self.switches, self.links, self.matrices,
                    needed_bytes=self._needed_bytes(),
                    rows=self._verify_rows,
                    ridge=self.pricing.ridge_tokens(),
                    gpus=self.workload.parallel.tp,
                    state_passes=self.state_passes if self._has_state else None,
                )
            ),
        )  # fmt: skip

    @cached_property
    def pricing(self) -> Pricing:
        return Pricing(self.gpu, self.efficiency)

    @cached_property
    def matrices(self) -> tuple[WeightMatrix, ...]:
        matrices = self.model.weight_matrices(
            self._parallel,
            fc_replicated=self.switches.fc_replicated,
            head_replicated=self.switches.head_replicated,
        )
        return tuple(m for m in matrices if m.module == "target" or self.workload.draft_passes)

    @property
    def state_passes(self) -> int:
        return self.switches.passes(self.workload.verify_tokens, self.workload.draft_steps)

    @property
    def _parallel(self) -> Parallelism:
        return self.workload.parallel

    @property
    def _verify_rows(self) -> int:
        return self.workload.batch * self.workload.verify_tokens

    @property
    def _has_state(self) -> bool:
        return self._state_bytes(self.model.layers) > 0

    def _target_terms(self) -> list[Term]:
        rows, layers = self._verify_rows, self.model.layers
        target = [m for m in self.matrices if m.module == "target"]
        vectors = self.model.vectors_read(self._parallel, rows)
        weights = _sum(self.pricing.weight(m, rows) for m in target)
        weights += self.pricing.vectors(self.model.weight_format.bytes_of(vectors))
        reduces = sum(layer.all_reduces for layer in layers) + self.switches.embedding_sharded
        return [
            _term("weights", weights),
            _term("attention", self._attention(layers)),
            _term("gdn", self._states(layers, self.state_passes)),
            _term("collective", self._collective(rows, self.model.hidden, self.model.vocab,
                                                 reduces, gathers=0)),
            _term("elementwise", self._elementwise(rows)),
        ]  # fmt: skip

    def _draft_passes(self) -> list[tuple[int, dict[str, Cost]]]:
        draft, batch = self.model.draft, self.workload.batch
        if draft is None or not self.workload.draft_passes:
            return []
        passes = [batch] * self.workload.draft_passes
        if self.switches.draft_extend:
            passes[-1] = self._verify_rows
        return [(tokens, self._draft_pass(draft, tokens)) for tokens in passes]

    def _draft_pass(self, draft: Draft, tokens: int) -> dict[str, Cost]:
        mine = [m for m in self.matrices if m.module == "draft"]
        vectors = draft.weight_format.bytes_of(draft.vectors_read(self._parallel, tokens))
        body = [self.pricing.weight(m, tokens) for m in mine if m.name != "lm_head"]
        head = [self.pricing.weight(m, tokens) for m in mine if m.name == "lm_head"]
        reduces = draft.all_reduces - (not self.switches.embedding_sharded)
        gathers = bool(draft.fuse_inputs) and not self.switches.fc_replicated
        vocab = draft.own_vocab or self.model.vocab
        parts = {
            "weights": _sum(body) + self.pricing.vectors(vectors),
            "lm_head": _sum(head),
            "attention": self._attention(draft.layers),
            "gdn": self._states(draft.layers, passes=2),
            "collective": self._collective(tokens, draft.hidden, vocab, reduces, gathers),
        }
        return {name: cost for name, cost in parts.items() if name != "gdn" or cost.bytes}

    def _attention(self, layers: tuple[Layer, ...]) -> Cost:
        size = self._kv_bytes(layers, self.workload.context) * self.workload.requests_per_gpu
        kernels = sum(mixer.kind == "attention" for layer in layers for mixer in layer.mixers)
        return self.pricing.stream(size, kernels)

    def _kv_bytes(self, layers: tuple[Layer, ...], context: int) -> int:
        elements = sum(
            mixer.kv_elements(self._parallel.attention_tp) * min(context, mixer.window or context)
            for layer in layers
            for mixer in layer.mixers
        )
        return self.switches.kv_format.bytes_of(elements)

    def _states(self, layers: tuple[Layer, ...], passes: int) -> Cost:
        # The convolution's inputs are read once and written once, whatever the state's passes.
        size = passes * self._state_bytes(layers) + 2 * self._conv_state_bytes(layers)
        kernels = sum(mixer.kind != "attention" for layer in layers for mixer in layer.mixers)
        return self.pricing.stream(size, kernels)

    def _state_bytes(self, layers: tuple[Layer, ...]) -> int:
        tp = self._parallel.attention_tp
        elements = sum(mixer.state_elements(tp) for layer in layers for mixer in layer.mixers)
        return self._state_format.bytes_of(elements * self.workload.requests_per_gpu)

    def _conv_state_bytes(self, layers: tuple[Layer, ...]) -> int:
        tp = self._parallel.attention_tp
        elements = sum(mixer.conv_state_elements(tp) for layer in layers for mixer in layer.mixers)
        return ACTIVATION_BYTES * elements * self.workload.requests_per_gpu

    @property
    def _state_format(self) -> WeightFormat:
        return (
            self.switches.state_format
            or self.model.state_format
            or self.switches.default_state
            or self.model.weight_format
        )

    def _collective(self, rows: int, hidden: int, vocab: int, reduces: int, gathers: int) -> Cost:
        if self.links is None:
            return Cost()
        row = rows * ACTIVATION_BYTES
        cost = self.pricing.collectives(self.links.all_reduce, reduces, row * hidden)
        cost += self.pricing.collectives(self.links.all_gather, gathers, row * hidden)
        if self.switches.head_replicated:
            return cost
        return cost + self.pricing.collectives(self.links.all_gather, 1, row * vocab)

    def _elementwise(self, rows: int) -> Cost:
        """Embedding rows, and the small kernels: norms, activations, rotations, gates."""
        # Beside its norms a layer has an activation and, for a mixer, a rotation and a gate.
        nodes = sum(
            x.norms + 2 * len(x.mixers) + (x.feed_forward is not None) for x in self.model.layers
        )
        return self.pricing.nodes(nodes + 2, rows * self.model.hidden * ACTIVATION_BYTES)

    def _counts(self) -> RoundCounts:
        passes, draft = self.workload.draft_passes, self.model.draft
        several = self._parallel.tp > 1
        reduces = sum(x.all_reduces for x in self.model.layers) + self.switches.embedding_sharded
        gathers = 0 if self.switches.head_replicated else 1 + passes
        if draft and passes:
            reduces += passes * (draft.all_reduces - (not self.switches.embedding_sharded))
            gathers += passes * (bool(draft.fuse_inputs) and not self.switches.fc_replicated)
        return RoundCounts(
            lm_head_reads=1 + passes,
            all_reduces=reduces * several,
            all_gathers=gathers * several,
            broadcasts=self.switches.sampling_broadcasts * several,
            gemms=tuple(self._gemm_counts()),
        )

    def _gemm_counts(self) -> list[GemmCount]:
        counts: dict[tuple[str, Literal["verify", "draft"]], int] = {}
        for matrix in self.matrices:
            in_target = matrix.module == "target"
            phase: Literal["verify", "draft"] = "verify" if in_target else "draft"
            times = matrix.count * (1 if in_target else self.workload.draft_passes)
            counts[matrix.name, phase] = counts.get((matrix.name, phase), 0) + times
        return [GemmCount(name, phase, count) for (name, phase), count in counts.items()]

    def _resident_bytes(self) -> int:
        shared_head = self.model.draft is None or self.model.draft.own_vocab is None
        matrices = sum(
            m.resident_bytes for m in self.matrices
            if m.module == "target" or m.name != "lm_head" or not shared_head
        )  # fmt: skip
        return matrices + self._vector_bytes() + self._embedding_bytes()

    def _all_parameter_bytes(self) -> int:
        matrices = sum(m.resident_bytes for m in self.matrices if m.module == "target")
        return matrices + self._vector_bytes() + self._embedding_bytes()

    def _vector_bytes(self) -> int:
        return self.model.weight_format.bytes_of(self.model.vectors(self._parallel))

    def _embedding_bytes(self) -> int:
        if self.model.tied:
            return 0
        gpus = self._parallel.tp if self.switches.embedding_sharded else 1
        return self.model.weight_format.bytes_of(self.model.vocab * self.model.hidden // gpus)

    def _needed_bytes(self) -> int:
        requests, context = self.workload.requests_per_gpu, self.workload.context
        caches = self._kv_bytes(self.model.layers, context) * requests
        return self._resident_bytes() + caches + self._state_bytes(self.model.layers)


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, start=Cost())


def _term(name: str, cost: Cost) -> Term:
    return Term(name, cost.bytes, round(cost.floor), round(cost.expected))
