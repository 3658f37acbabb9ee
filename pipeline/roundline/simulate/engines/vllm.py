"""vLLM V1: full verify graph, eager head, rejection sampling, then K draft passes in piecewise
graphs, all after the verification of the same round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roundline.simulate.engines.setup import PROMPT_ROWS, Setup, piecewise
from roundline.simulate.names import torch_names as t
from roundline.simulate.names import vllm as names
from roundline.simulate.names.dialect import Names
from roundline.simulate.ops import (
    Begin,
    Op,
    Replay,
    Step,
    Sync,
    Work,
    copy,
    eagerly,
    in_phase,
)
from roundline.simulate.timeline import Anchor


@dataclass(frozen=True)
class Vllm:
    """Rounds of vLLM's V1 engine; without draft steps it decodes plainly."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Verify, sample, draft; then the inputs of the next step."""
        steps: list[Step] = [Begin(anchor), *self._forward(), *self._sample()]
        for draft_step in range(1, self.setup.draft_steps + 1):
            steps += self._draft(draft_step)
        return steps + self._next_inputs()

    def prefill(self) -> list[Step]:
        """The target over a prompt in piecewise graphs; its draft passes follow as in a round."""
        forward = self.setup.forward(PROMPT_ROWS, "prefill")
        ops = in_phase([*forward.target(), *forward.small((t.ARGMAX,))], "prefill")
        draft = in_phase([*forward.mtp(), *forward.small((t.ARGMAX,))], "prefill")
        label = f"execute_context_1({PROMPT_ROWS})_generation_0(0)"
        steps = self._piecewise("prefill", ops) + self._piecewise("prefill draft", draft)
        return [Sync(), *self.setup.within(label, steps), *self._next_inputs()]

    def _forward(self) -> list[Step]:
        rows = self.setup.verify_rows()
        graph = Replay(f"full/{rows}", self._body)
        label = f"execute_context_0(0)_generation_{self.setup.batch}({rows})"
        forward = self.setup.within("gpu_model_runner: forward", [graph])
        return self.setup.within(label, forward + eagerly(self._head))

    @cached_property
    def _body(self) -> tuple[Op, ...]:
        return in_phase(self.setup.forward(self.setup.verify_rows(), "verify").body(), "verify")

    @cached_property
    def _head(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        return in_phase([*forward.small((t.TAKE,)), *forward.head()], "verify")

    def _sample(self) -> list[Step]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        chain: Names = (t.ARGMAX, names.REJECTION_GREEDY)
        if not self.setup.greedy:
            chain = (names.EXPAND, t.SOFTMAX_ROWS, names.RECOVERED, names.REJECTION_RANDOM)
        ops = in_phase(forward.small(chain), "sample")
        bookkeeping = [copy("DtoH", 8 * self.setup.verify_rows())]
        return [
            *self.setup.within("gpu_model_runner: sample", eagerly(ops)),
            *eagerly(bookkeeping),
        ]

    def _draft(self, draft_step: int) -> list[Step]:
        is_first = draft_step == 1
        rows = self.setup.verify_rows() if is_first else self.setup.batch
        forward = self.setup.forward(rows, "verify" if is_first else "decode")
        prepare: Names = (names.STEP_METADATA,)
        if is_first:
            prepare = (names.PREPARE_NEXT_TOKEN, names.PREPARE_INPUTS)
        ops = in_phase([*forward.mtp(), *forward.small((t.ARGMAX,))], "draft", draft_step)
        steps = self.setup.within("gpu_model_runner: draft", self._piecewise(f"draft/{rows}", ops))
        return eagerly(forward.small(prepare)) + steps

    def _piecewise(self, name: str, ops: tuple[Op, ...]) -> list[Step]:
        """Graphs between the seams; attention, its cache write and the head run eagerly."""
        dialect = self.setup.dialect
        seams = (*dialect.kv_write, *dialect.attention("verify"), *dialect.attention("prefill"))
        head = next((i for i, op in enumerate(ops) if op.matrix == "lm_head"), len(ops))
        return piecewise(name, list(ops[:head]), seams) + eagerly(ops[head:])

    def _next_inputs(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        work: list[Step] = [
            Sync("cudaEventSynchronize"),
            Work(self.setup.host_ns(420_000), "aten::to"),
        ]
        prepare = eagerly(
            [copy("HtoD", 4_096), copy("HtoD", 2_048), *forward.small((names.SLOT_MAPPINGS,))]
        )
        return work + self.setup.within("gpu_model_runner: preprocess", prepare)
