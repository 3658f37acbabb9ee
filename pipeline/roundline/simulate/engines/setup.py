"""What an engine program is told, and what it offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol

from roundline.simulate.costs import KernelCosts
from roundline.simulate.forward import Forward
from roundline.simulate.names.dialect import Dialect, Mode
from roundline.simulate.ops import Close, KernelName, Op, Open, Replay, Step, eagerly
from roundline.simulate.shapes import ModelShape
from roundline.simulate.timeline import Anchor

PROMPT_ROWS = 512


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A server: its model, its GPUs and its switches.

    Attributes:
        draft_steps: draft passes per round (K); a round verifies K + 1 tokens per sequence.
        batch: sequences in a round.
        context: tokens in the KV cache of each sequence.
        extend: how the draft pass after acceptance is launched.
        greedy: argmax sampling; otherwise probabilities, broadcast from rank 0.
        ranges: emit the ranges of the engine.
        piecewise: prompts run in graphs between the attentions and exchanges.
        fc_sharded: the MTP projection is split over ranks and gathered, not replicated.
        draft_model: a model of its own that drafts, instead of the target's MTP layer.
        host_factor: scales the host's own work between launches.
    """

    model: ModelShape
    costs: KernelCosts
    dialect: Dialect
    tp: int = 1
    draft_steps: int = 3
    batch: int = 1
    context: int = 240
    extend: Literal["graph", "eager"] = "graph"
    greedy: bool = True
    ranges: bool = False
    side_stream: bool = False
    piecewise: bool = False
    overlap_ns: int = 0
    fc_sharded: bool = False
    draft_model: ModelShape | None = None
    host_factor: float = 1.0

    def forward(self, rows: int, mode: Mode) -> Forward:
        """Passes over `rows` tokens."""
        return self._forward(self.model, rows, mode)

    def drafter(self, rows: int, mode: Mode) -> Forward:
        """Passes of the draft model; the target's own MTP layer if there is none."""
        return self._forward(self.draft_model or self.model, rows, mode)

    def verify_rows(self) -> int:
        """Tokens that one round verifies."""
        return self.batch * (self.draft_steps + 1)

    def _forward(self, model: ModelShape, rows: int, mode: Mode) -> Forward:
        return Forward(
            dialect=self.dialect,
            costs=self.costs,
            model=model,
            tp=self.tp,
            rows=rows,
            batch=self.batch,
            context=self.context,
            mode=mode,
            side_stream=self.side_stream,
            overlap_ns=self.overlap_ns,
            fc_sharded=self.fc_sharded,
        )

    def host_ns(self, duration_ns: int) -> int:
        """The host's own work, scaled."""
        return round(duration_ns * self.host_factor)

    def within(self, name: str, steps: list[Step]) -> list[Step]:
        """`steps` inside a range, if ranges are emitted."""
        return [Open(name), *steps, Close()] if self.ranges else steps


def piecewise(name: str, ops: list[Op], seams: Iterable[KernelName]) -> list[Step]:
    """Graphs between the seams, the seams themselves eager."""
    names = tuple(seam.name for seam in seams)
    steps: list[Step] = []
    for number, (is_seam, run) in enumerate(_split_at(ops, names)):
        steps += eagerly(run) if is_seam else [Replay(f"{name}/{number}", tuple(run))]
    return steps


class Program(Protocol):
    """An engine at work."""

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Decode round `number`, from its anchor to the last step before the next anchor."""

    def prefill(self) -> list[Step]:
        """A prompt between two rounds."""


def _split_at(ops: list[Op], names: tuple[str, ...]) -> Iterator[tuple[bool, list[Op]]]:
    """Runs of ops, those whose name is in `names` apart (True): the seams of piecewise graphs."""
    run: list[Op] = []
    for op in ops:
        if op.name in names:
            if run:
                yield False, run
            yield True, [op]
            run = []
        else:
            run.append(op)
    if run:
        yield False, run
