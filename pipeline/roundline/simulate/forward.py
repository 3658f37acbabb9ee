"""One forward pass, layer by layer, in the words of an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from roundline.simulate.feed_forward import feed_forward
from roundline.simulate.mixers import mixer
from roundline.simulate.ops import Op
from roundline.simulate.pass_kernels import ACTIVATION_BYTES, PassKernels
from roundline.simulate.shapes import Matrix

_LOGIT_BYTES: Final = 2


@dataclass(frozen=True, kw_only=True)
class Forward(PassKernels):
    """Passes of the target and of what drafts for it."""

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
        return self.small(self.dialect.embedding) + self.all_reduce()

    def layer(self, index: int) -> list[Op]:
        """One decoder layer of the target."""
        ops = self.small(self.dialect.add_norm if index else self.dialect.first_norm)
        ops += mixer(self, self.model.layers[index])
        ops += self.small(self.dialect.add_norm) + feed_forward(self)
        return [replace(op, layer=index) for op in ops]

    def head(self) -> list[Op]:
        """Vocabulary projection, gathered over ranks and cast to float."""
        ops = self.gemm(self.model.lm_head(self.tp))
        if self.tp > 1:
            size_bytes = self.rows * self.model.vocabulary * _LOGIT_BYTES
            ops.append(self.collective(self.dialect.all_gather, size_bytes))
        return ops + self.small(self.dialect.cast)

    def mtp(self) -> list[Op]:
        """One pass of an MTP layer: embedding, projection, one layer, norm, shared head."""
        dialect = self.dialect
        ops = self.embedding() + self.small(dialect.first_norm * 2)
        ops += self.small(dialect.concatenate) + self._projection()
        ops += self.small(dialect.first_norm) + mixer(self, "attention")
        ops += self.small(dialect.add_norm) + feed_forward(self)
        return ops + self.small(dialect.final_norm) + self.head()

    def draft_pass(self) -> list[Op]:
        """One pass of whatever drafts: the MTP layer where the model has one, else all layers."""
        return self.mtp() if self.model.has_mtp else self.target()

    def _projection(self) -> list[Op]:
        if not self.fc_sharded or self.tp == 1:
            return self.gemm(self.model.fc())
        share = Matrix("fc", 2 * self.model.hidden, self.model.hidden // self.tp)
        size_bytes = self.rows * self.model.hidden * ACTIVATION_BYTES
        return [*self.gemm(share), self.collective(self.dialect.all_gather, size_bytes)]
