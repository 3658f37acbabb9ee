"""The measured round with something changed: bounds, not promises.

Every piece of the measured round that the model prices is scaled by predicted after / predicted
before, so that it stays as far from its expectation as it was measured. What the model does not
price (idle, sampling, copies, other work) is held constant, never dropped:
T' = sum of t_i x p_i' / p_i + T_rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from roundline.bandwidth import speculation
from roundline.bandwidth.prediction import RoundFloor
from roundline.reconcile.changes import GIVEN, Changes, base_of, changed, describe
from roundline.reconcile.exchanges import Exchange, kernel_seen
from roundline.reconcile.ledger import TERMS
from roundline.reconcile.measured import MeasuredRank
from roundline.reconcile.pieces import Piece, Price, pieces_of, price_of, prices_of

Basis = Literal["held", "unchanged", "scaled", "new", "given", "gone"]


@dataclass(frozen=True)
class WhatIfPart:
    """A piece of a term that scales as one; times in ms of a mean steady round.

    `after_ms` keeps the measured efficiency. `at_best_ms` is lower where a memory piece changes:
    it then reaches its new floor.
    """

    part: str
    before_ms: float
    after_ms: float
    at_best_ms: float
    basis: Basis


@dataclass(frozen=True)
class WhatIfLine:
    """One ledger term and its pieces."""

    term: str
    parts: tuple[WhatIfPart, ...]

    @property
    def before_ms(self) -> float:
        """Measured time."""
        return sum(part.before_ms for part in self.parts)

    @property
    def after_ms(self) -> float:
        """Time after the change, at the measured efficiency."""
        return sum(part.after_ms for part in self.parts)

    @property
    def at_best_ms(self) -> float:
        """Time after the change, where changed memory pieces reach their floor."""
        return sum(part.at_best_ms for part in self.parts)

    @property
    def basis(self) -> Basis:
        """What was done to the term: the first thing that was done to any of its pieces."""
        found = [part.basis for part in self.parts]
        return next((b for b in found if b not in ("held", "unchanged")), found[0])


@dataclass(frozen=True)
class Rate:
    """Tokens per second at a stated accept length; None where no length is known."""

    accept_len: float | None
    accept_basis: str
    tokens_per_s: float | None


@dataclass(frozen=True)
class WhatIf:
    """A measured round before and after; `at_best` is the rate of the floor-limited bound."""

    rank: int
    changes: tuple[str, ...]
    lines: tuple[WhatIfLine, ...]
    before: Rate
    after: Rate
    at_best: Rate
    floor_after_ms: float
    held: tuple[str, ...]
    assumptions: tuple[str, ...]

    @property
    def before_ms(self) -> float:
        """The measured round."""
        return sum(line.before_ms for line in self.lines)

    @property
    def after_ms(self) -> float:
        """The round at constant efficiency."""
        return sum(line.after_ms for line in self.lines)

    @property
    def at_best_ms(self) -> float:
        """The round where the changed memory pieces reach their floor."""
        return sum(line.at_best_ms for line in self.lines)


def what_if(
    measured: MeasuredRank,
    floor: RoundFloor,
    changes: Changes,
    exchanges: tuple[Exchange, ...] = (),
    accept_len: float | None = None,
    accept_len_after: float | None = None,
    missing_evidence: tuple[str, ...] = (),
) -> WhatIf:
    """The measured round of one rank with `changes` and nothing else.

    Args:
        measured: the steady rounds.
        floor: the prediction of the round as it was measured.
        changes: what is named.
        exchanges: the rank's collectives, so that waiting is not scaled as transfer.
        accept_len: of the measured round, the bonus token included.
        accept_len_after: of the changed round; where None it follows from a constant rate.
        missing_evidence: what the verdict on the measured round misses.

    Raises:
        UsageError: a change is impossible, or an accept length is outside 1 to K + 1.
    """
    base = base_of(floor, changes, kernel_seen(exchanges))
    after = changed(base, changes)
    scale = _Scale(base, after, changes)
    lines = tuple(_lines(list(pieces_of(measured, exchanges)), scale))
    times = [sum(getattr(line, at) for line in lines) for at in _TIMES]
    then = _length_after(accept_len, accept_len_after, floor, after)
    now = (accept_len, "of the measured round")
    return WhatIf(
        rank=measured.rank,
        changes=describe(changes, base, after),
        lines=lines,
        before=_rate(now, times[0], floor),
        after=_rate(then, times[1], after),
        at_best=_rate(then, times[2], after),
        floor_after_ms=after.floor_ms,
        held=tuple(_held(lines)),
        assumptions=(
            *_assumptions(base, after, lines, exchanges),
            *(f"the measured round is not fully accounted for: {x}" for x in missing_evidence),
        ),
    )


_TIMES: Final = ("before_ms", "after_ms", "at_best_ms")


@dataclass(frozen=True)
class _Scale:
    base: RoundFloor
    after: RoundFloor
    changes: Changes

    def part(self, piece: Piece) -> WhatIfPart:
        """What becomes of a piece of the measured round."""
        then = price_of(piece, self.after)
        now = price_of(piece, self.base)
        idle_ms = self.changes.idle_ms
        if piece.term == "idle" and idle_ms is not None:
            return WhatIfPart(piece.part, piece.ms, idle_ms, idle_ms, "given")
        if now is None or then is None:
            return WhatIfPart(piece.part, piece.ms, piece.ms, piece.ms, "held")
        if self.changes.all_reduce_ns is not None and piece.part in ("all_reduce", "collective"):
            ms = then.expected_ms
            return WhatIfPart(piece.part, piece.ms, ms, ms, "given")
        if now == then:
            return WhatIfPart(piece.part, piece.ms, piece.ms, piece.ms, "unchanged")
        if not now.expected_ms:
            return self._new(piece, then)
        ms = piece.ms * (then.expected_ms / now.expected_ms)
        best = min(ms, then.floor_ms) if piece.is_memory else ms
        return WhatIfPart(piece.part, piece.ms, ms, best, "scaled" if then.expected_ms else "gone")

    def _new(self, piece: Piece, then: Price) -> WhatIfPart:
        best = then.floor_ms if piece.is_memory else then.expected_ms
        return WhatIfPart(piece.part, piece.ms, then.expected_ms, best, "new")

    def unmeasured(self, pieces: list[Piece]) -> Iterator[Piece]:
        """Pieces that only the changed round has."""
        whole = {piece.term for piece in pieces if piece.is_whole}
        known = {(piece.term, piece.part) for piece in pieces} | set(prices_of(self.base))
        for term, part in prices_of(self.after):
            if term not in whole and (term, part) not in known:
                yield Piece(term, part, 0.0)


def _lines(pieces: list[Piece], scale: _Scale) -> Iterator[WhatIfLine]:
    pieces += list(scale.unmeasured(pieces))
    for term in TERMS:
        parts = tuple(scale.part(piece) for piece in pieces if piece.term == term)
        yield WhatIfLine(term, parts)


def _length_after(
    now: float | None, given: float | None, floor: RoundFloor, after: RoundFloor
) -> tuple[float | None, str]:
    """The accept length of the changed round, and what it rests on."""
    before_steps, steps = floor.workload.draft_steps, after.workload.draft_steps
    if given is not None:
        speculation.check_acceptance(steps, given, includes_bonus=True)
        return given, "given"
    if steps == before_steps:
        return now, "as measured"
    if steps == 0:
        return 1.0, "plain decode"
    if now is None or before_steps == 0:
        return None, "unknown: give --to-accept-len"
    constant = speculation.constant_from_length(min(now, before_steps + 1), before_steps)
    bound = "an upper bound" if steps > before_steps else "a lower bound"
    length = speculation.length_from_constant(constant, steps)
    return length, f"constant rate {constant:.3f} at every position, {bound}: real rates fall"


def _rate(length: tuple[float | None, str], round_ms: float, floor: RoundFloor) -> Rate:
    accept_len, basis = length
    if accept_len is None or round_ms <= 0:
        return Rate(accept_len, basis, None)
    rate = speculation.tokens_per_s(accept_len, round_ms, floor.workload.batch)
    return Rate(accept_len, basis, rate)


def _held(lines: tuple[WhatIfLine, ...]) -> Iterator[str]:
    """T_rest, and what of it a reader might have expected to move."""
    rest = [(line, part) for line in lines for part in line.parts if part.basis == "held"]
    total, round_ms = sum(part.before_ms for _, part in rest), sum(ln.before_ms for ln in lines)
    names = ", ".join(f"{line.term} {part.before_ms:.2f}" for line, part in rest if part.before_ms)
    share = f", {100 * total / round_ms:.1f} % of the round" if round_ms else ""
    yield f"held constant because no bandwidth model predicts it: {total:.2f} ms{share} ({names})"
    same = [line.term for line in lines if line.before_ms and line.basis == "unchanged"]
    if same:
        yield f"the change does not touch: {', '.join(same)}"


def _assumptions(
    floor: RoundFloor,
    after: RoundFloor,
    lines: tuple[WhatIfLine, ...],
    exchanges: tuple[Exchange, ...],
) -> Iterator[str]:
    bases = {part.basis for line in lines for part in line.parts}
    if "scaled" in bases:
        yield (
            "scaled terms keep their distance from the expectation: efficiencies and latencies"
            " hold on the changed round too; at best, changed memory terms reach their floor"
        )
    if "new" in bases:
        yield "new terms were never measured: they stand as the model expects them"
    if any(not exchange.paired for exchange in exchanges):
        yield "not every rank was captured, so waiting for other ranks is scaled as transfer"
    yield from _about_work(floor, after)
    if after.gpu.memory_bytes and after.resident_bytes > after.gpu.memory_bytes:
        size, memory = after.resident_bytes / 1e9, after.gpu.memory_bytes / 1e9
        yield f"it does not fit: {size:.1f} GB of weights per GPU, {memory:g} GB of memory"


def _about_work(floor: RoundFloor, after: RoundFloor) -> Iterator[str]:
    """What a different amount of work changes and this does not follow."""
    is_given = after.links is not None and after.links.all_reduce.source == GIVEN
    if floor.links and after.links and floor.links != after.links and not is_given:
        kernels = f"{floor.links.all_reduce.kernel} to {after.links.all_reduce.kernel}"
        yield f"collectives change as public measurements do, from {kernels}"
    if floor.gpu != after.gpu and floor.links is not None and floor.links == after.links:
        yield f"links are those of the measured round ({floor.links.all_reduce.link})"
    if floor.workload.batch != after.workload.batch:
        yield "sampling and host time are those of the measured batch: more requests need more"
    if floor.workload.draft_steps != after.workload.draft_steps:
        yield "idle time is that of the measured draft steps; a chain is drafted"
    if _formats(floor) != _formats(after):
        yield "accept lengths are those of the measured weights: other formats may change them"


def _formats(floor: RoundFloor) -> set[str]:
    return {matrix.format for matrix in floor.matrices}
