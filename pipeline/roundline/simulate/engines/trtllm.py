"""TensorRT-LLM, PyTorch flow: one graph for a whole iteration, or a graph for each model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roundline.simulate.engines.setup import PROMPT_ROWS, Setup
from roundline.simulate.names import torch_names as t
from roundline.simulate.names import trtllm as names
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
class TrtllmOneModel:
    """Multi-token prediction inside the forward: verify, accept and all drafts in one graph."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """One graph launch, then the host's part of the iteration."""
        label = f"[Executor] _forward_step 7: 0 ctx reqs, {self.setup.batch} gen reqs"
        launch: list[Step] = [Replay(f"iteration/{self.setup.batch}", self._iteration)]
        return [Begin(anchor), *self.setup.within(label, launch), *self._next_inputs()]

    def prefill(self) -> list[Step]:
        """An iteration with a context request, eager."""
        forward = self.setup.forward(PROMPT_ROWS, "prefill")
        ops = [*forward.target(), *forward.small((t.ARGMAX,))]
        for _ in range(self.setup.draft_steps):
            ops += [*forward.mtp(), *forward.small((t.ARGMAX,))]
        label = "[Executor] _forward_step 8: 1 ctx reqs, 0 gen reqs"
        steps = self.setup.within(label, eagerly(in_phase(ops, "prefill")))
        return [Sync(), *steps, *self._next_inputs()]

    @cached_property
    def _iteration(self) -> tuple[Op, ...]:
        verify = self.setup.forward(self.setup.verify_rows(), "verify")
        ops = [*in_phase(verify.target(), "verify")]
        ops += in_phase(verify.small((t.ARGMAX, names.ACCEPT)), "sample")
        for draft_step in range(1, self.setup.draft_steps + 1):
            is_first = draft_step == 1
            forward = verify if is_first else self.setup.forward(self.setup.batch, "decode")
            one = [*forward.mtp(), *forward.small((t.ARGMAX,))]
            ops += in_phase(one, "draft", draft_step)
        return tuple(ops)

    def _next_inputs(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return [
            *eagerly([copy("DtoH", 64 * self.setup.batch)]),
            Sync("cudaEventSynchronize"),
            Work(self.setup.host_ns(350_000), "aten::to"),
            *eagerly([copy("HtoD", 4_096), *forward.small((names.PREPARE_DRAFTER, t.ADD_LONG))]),
        ]


@dataclass(frozen=True)
class TrtllmTwoModel:
    """A draft engine beside the target: a graph for each, sampling between them eager."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Target graph, acceptance, then one draft graph for each draft step."""
        label = f"[Executor] _forward_step 7: 0 ctx reqs, {self.setup.batch} gen reqs"
        target: list[Step] = [Replay(f"target/{self.setup.batch}", self._target)]
        steps: list[Step] = [Begin(anchor), *self.setup.within(label, target)]
        steps += eagerly(self._accept)
        steps += self.setup.within("_prepare_draft_batch", self._drafts())
        return steps + self._next_inputs()

    def prefill(self) -> list[Step]:
        """The target over a prompt, eager."""
        forward = self.setup.forward(PROMPT_ROWS, "prefill")
        ops = in_phase([*forward.target(), *forward.small((t.ARGMAX,))], "prefill")
        label = "[Executor] _forward_step 8: 1 ctx reqs, 0 gen reqs"
        return [Sync(), *self.setup.within(label, eagerly(ops)), *self._next_inputs()]

    @cached_property
    def _target(self) -> tuple[Op, ...]:
        return in_phase(self.setup.forward(self.setup.verify_rows(), "verify").target(), "verify")

    @cached_property
    def _accept(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        return in_phase(forward.small((t.ARGMAX, names.ACCEPT)), "sample")

    def _drafts(self) -> list[Step]:
        steps: list[Step] = []
        for draft_step in range(1, self.setup.draft_steps + 1):
            rows = self.setup.verify_rows() if draft_step == 1 else self.setup.batch
            forward = self.setup.drafter(rows, "verify" if draft_step == 1 else "decode")
            ops = in_phase(forward.draft_pass(), "draft", draft_step)
            argmax = in_phase(forward.small((t.ARGMAX,)), "draft", draft_step)
            steps += [Replay(f"draft/{rows}", ops), *eagerly(argmax)]
        return steps

    def _next_inputs(self) -> list[Step]:
        return [
            *eagerly([copy("DtoH", 64 * self.setup.batch)]),
            Sync("cudaEventSynchronize"),
            Work(self.setup.host_ns(500_000), "aten::to"),
            *eagerly([copy("HtoD", 4_096)]),
        ]
