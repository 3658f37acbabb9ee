"""llama.cpp: no CUDA graphs, drafts token by token, sampling on the host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roundline.simulate.engines.setup import PROMPT_ROWS, Setup
from roundline.simulate.forward import Forward
from roundline.simulate.ops import (
    Begin,
    Op,
    Step,
    Sync,
    Work,
    copy,
    eagerly,
    in_phase,
)
from roundline.simulate.timeline import Anchor

_LOGIT_BYTES = 4


@dataclass(frozen=True)
class LlamaCpp:
    """Rounds of llama-server: K draft tokens from an MTP head or a draft model, one batch."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Draft passes, verification, and the inputs of the next draft."""
        steps: list[Step] = [Begin(anchor)]
        for draft_step in range(1, self.setup.draft_steps + 1):
            steps += self._draft(draft_step)
        steps += eagerly(self._verify) + self._sampled_on_host(self.setup.verify_rows(), 310_000)
        return steps + self._inputs()

    def prefill(self) -> list[Step]:
        """One batch over a prompt."""
        ops = in_phase(self.setup.forward(PROMPT_ROWS, "prefill").target(), "prefill")
        return [Sync(), *self._inputs(), *eagerly(ops), *self._sampled_on_host(1, 150_000)]

    def _draft(self, draft_step: int) -> list[Step]:
        forward = self.setup.drafter(1, "decode")
        ops = in_phase(forward.draft_pass(), "draft", draft_step)
        return [*eagerly(ops), *self._sampled_on_host(1, 90_000), *self._inputs()]

    @cached_property
    def _verify(self) -> tuple[Op, ...]:
        forward: Forward = self.setup.forward(self.setup.verify_rows(), "verify")
        return in_phase(forward.target(), "verify")

    def _sampled_on_host(self, rows: int, duration_ns: int) -> list[Step]:
        logits = copy("DtoH", rows * self.setup.model.vocabulary * _LOGIT_BYTES)
        return [*eagerly([logits]), Sync(), Work(self.setup.host_ns(duration_ns))]

    def _inputs(self) -> list[Step]:
        return eagerly([copy("HtoD", 256), copy("HtoD", 1_024)])
