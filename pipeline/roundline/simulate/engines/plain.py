"""Plain decode: one token per sequence and round, with one graph per step or without graphs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roundline.simulate.engines.setup import PROMPT_ROWS, Setup
from roundline.simulate.names import torch_names as t
from roundline.simulate.ops import Begin, Op, Replay, Step, Sync, Work, copy, eagerly, in_phase
from roundline.simulate.timeline import Anchor


@dataclass(frozen=True)
class PlainDecode:
    """Rounds of a server that does not speculate."""

    setup: Setup
    with_graph: bool = True

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """The target over one token per sequence, then sampling and the token's way home."""
        forward: list[Step] = (
            [Replay(f"decode/{self.setup.batch}", self._target)]
            if self.with_graph
            else eagerly(self._target)
        )
        label = f"step[DECODE bs={self.setup.batch}]"
        steps: list[Step] = [Begin(anchor), *self.setup.within(label, forward)]
        return steps + eagerly(self._sampling) + self._next_inputs()

    def prefill(self) -> list[Step]:
        """The target over a prompt, always eager."""
        forward = self.setup.forward(PROMPT_ROWS, "prefill")
        ops = [*forward.target(), *forward.small((t.ARGMAX,))]
        label = f"step[EXTEND bs=1 toks={PROMPT_ROWS}]"
        steps = self.setup.within(label, eagerly(in_phase(ops, "prefill")))
        inputs: list[Step] = [
            Sync(),
            Work(self.setup.host_ns(700_000)),
            *eagerly([copy("HtoD", 8 * PROMPT_ROWS)]),
        ]
        return [*inputs, *steps, *self._next_inputs()]

    @cached_property
    def _target(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return in_phase(forward.target(), "verify")

    @cached_property
    def _sampling(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return in_phase(forward.small((t.ARGMAX,)), "sample")

    def _next_inputs(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return [
            *eagerly([copy("DtoH", 8 * self.setup.batch)]),
            Sync(),
            Work(self.setup.host_ns(140_000), "aten::to"),
            *eagerly([copy("HtoD", 8 * self.setup.batch), *forward.small((t.ADD_LONG,))]),
        ]
