"""The measured round with something changed: bounds, not promises.

Every piece of the measured round that the model prices is scaled by predicted after / predicted
before, so that it stays as far from its expectation as it was measured. What the model does not
price (idle, sampling, copies, other work) is held constant, never dropped:
T' = sum of t_i x p_i' / p_i + T_rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from roundline.bandwidth import speculation
from roundline.bandwidth.prediction import Phase, RoundFloor
from roundline.reconcile.changes import Changes, base_of, changed, describe
from roundline.reconcile.exchanges import Exchange, kernel_seen
from roundline.reconcile.ledger import MEMORY_TERMS, TERMS
from roundline.reconcile.measured import MeasuredRank

Basis = Literal["held", "unchanged", "scaled", "new", "given", "gone"]
_WHOLE: Final = ("", "collective")  # parts that stand for all of their term


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
) -> WhatIf:
    """The measured round of one rank with `changes` and nothing else.

    Args:
        measured: the steady rounds.
        floor: the prediction of the round as it was measured.
        changes: what is named.
        exchanges: the rank's collectives, so that waiting is not scaled as transfer.
        accept_len: of the measured round, the bonus token included.
        accept_len_after: of the changed round; where None it follows from a constant rate.

    Raises:
        UsageError: a change is impossible, or an accept length is outside 1 to K + 1.
    """
    base = base_of(floor, changes, kernel_seen(exchanges))
    after = changed(base, changes)
    scale = _Scale(base, after, is_given=changes.all_reduce_ns is not None)
    lines = tuple(_lines(list(_pieces(measured, exchanges)), scale))
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
        assumptions=tuple(_assumptions(base, after, lines, exchanges)),
    )


_TIMES: Final = ("before_ms", "after_ms", "at_best_ms")


@dataclass(frozen=True)
class _Piece:
    term: str
    part: str
    ms: float


def _pieces(measured: MeasuredRank, exchanges: tuple[Exchange, ...]) -> Iterator[_Piece]:
    """The measured round in pieces that scale as one; they add up to its terms."""
    for term in TERMS:
        ms = measured.term_ms(term)
        if term == "collective":
            yield from _split("collective", ms, [e for e in exchanges if e.phase == "verify"])
        elif term == "draft" and measured.draft_parts:
            yield from _draft_pieces(measured, exchanges)
        else:
            yield _Piece(term, "", ms)


def _draft_pieces(measured: MeasuredRank, exchanges: tuple[Exchange, ...]) -> Iterator[_Piece]:
    mine = [e for e in exchanges if e.phase in ("draft", "draft_extend")]
    for part in measured.draft_parts:
        if part.part == "collective":
            yield from _split("draft", part.ms, mine)
        else:
            yield _Piece("draft", part.part, part.ms)


def _split(term: str, ms: float, exchanges: list[Exchange]) -> Iterator[_Piece]:
    """Exclusive time of collectives by operation and wait, as their raw durations are."""
    shares: dict[str, float] = {}
    for exchange in exchanges:
        name = exchange.operation
        shares[name] = shares.get(name, 0.0) + exchange.transfer_ms
        shares["wait"] = shares.get("wait", 0.0) + exchange.wait_ms
    total = sum(shares.values())
    if not total:
        yield _Piece(term, "collective", ms)
    for part, share in shares.items() if total else ():
        yield _Piece(term, part, ms * share / total)


@dataclass(frozen=True)
class _Price:
    """What the model says of a piece; where it knows no time, anything it is proportional to."""

    floor_ms: float
    expected_ms: float


_Prices = dict[tuple[str, str], _Price]


@dataclass(frozen=True)
class _Scale:
    base: RoundFloor
    after: RoundFloor
    is_given: bool  # the time of an all-reduce is given, so it is no ratio

    def part(self, piece: _Piece) -> WhatIfPart:
        then = _price(piece, self.after)
        now = _price(piece, self.base)
        if now is None or then is None:
            return WhatIfPart(piece.part, piece.ms, piece.ms, piece.ms, "held")
        if self.is_given and piece.part in ("all_reduce", "collective"):
            ms = then.expected_ms
            return WhatIfPart(piece.part, piece.ms, ms, ms, "given")
        if now == then:
            return WhatIfPart(piece.part, piece.ms, piece.ms, piece.ms, "unchanged")
        if not now.expected_ms:
            return self._new(piece, then)
        ms = piece.ms * (then.expected_ms / now.expected_ms)
        best = min(ms, then.floor_ms) if _is_memory(piece) else ms
        return WhatIfPart(piece.part, piece.ms, ms, best, "scaled" if then.expected_ms else "gone")

    def _new(self, piece: _Piece, then: _Price) -> WhatIfPart:
        best = then.floor_ms if _is_memory(piece) else then.expected_ms
        return WhatIfPart(piece.part, piece.ms, then.expected_ms, best, "new")

    def unmeasured(self, pieces: list[_Piece]) -> Iterator[_Piece]:
        """Pieces that only the changed round has."""
        whole = {piece.term for piece in pieces if piece.part in _WHOLE}
        known = {(piece.term, piece.part) for piece in pieces} | set(_prices(self.base))
        for term, part in _prices(self.after):
            if term not in whole and (term, part) not in known:
                yield _Piece(term, part, 0.0)


def _is_memory(piece: _Piece) -> bool:
    return (piece.part or piece.term) in MEMORY_TERMS


def _lines(pieces: list[_Piece], scale: _Scale) -> Iterator[WhatIfLine]:
    pieces += list(scale.unmeasured(pieces))
    for term in TERMS:
        parts = tuple(scale.part(piece) for piece in pieces if piece.term == term)
        yield WhatIfLine(term, parts)


def _price(piece: _Piece, floor: RoundFloor) -> _Price | None:
    """The model's price of a piece; None where it has none, so that the piece is held."""
    prices, passes = _prices(floor), len(floor.draft_passes)
    if piece.part == "collective":
        return _total(price for key, price in prices.items() if key[1].startswith("all_"))
    if (piece.term, piece.part) == ("draft", ""):
        return _total(price for key, price in prices.items() if key[0] == "draft")
    priced = prices.get((piece.term, piece.part))
    if priced is not None:
        return priced
    if piece.term not in ("collective", "draft"):
        return None
    # waits and other collectives exist with the links, and whatever drafts do once a pass
    once = passes if piece.term == "draft" else 1
    return _Price(0.0, float(once * (piece.part != "wait" or floor.links is not None)))


def _prices(floor: RoundFloor) -> _Prices:
    """Prices of all pieces that the model knows."""
    prices = {
        (t.term, ""): _Price(t.floor_ms, t.expected_ms)
        for t in floor.terms
        if t.term not in ("collective", "draft")
    }
    for part in (part for each in floor.draft_passes for part in each.parts):
        if part.term != "collective":
            key = ("draft", "weights" if part.term == "lm_head" else part.term)
            _add(prices, key, _Price(part.floor_ms, part.expected_ms))
    if floor.links is not None:
        _add_messages(prices, floor)
    return prices


_TERM_OF: Final[dict[Phase, str]] = {"verify": "collective", "draft": "draft"}


def _add_messages(prices: _Prices, floor: RoundFloor) -> None:
    for m in floor.counts.messages:
        assert floor.links is not None
        cost = (
            floor.links.all_gather if m.collective == "all_gather"
            else floor.links.all_reduce_for(m.message_bytes)
        )  # fmt: skip
        expected_ms = float(m.count * cost.time_ns(m.message_bytes)) / 1e6
        _add(prices, (_TERM_OF[m.phase], m.collective), _Price(0.0, expected_ms))


def _add(prices: _Prices, key: tuple[str, str], price: _Price) -> None:
    prices[key] = _total([prices.get(key, _Price(0.0, 0.0)), price])


def _total(prices: Iterable[_Price]) -> _Price:
    listed = list(prices)
    return _Price(sum(p.floor_ms for p in listed), sum(p.expected_ms for p in listed))


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
    if floor.links is not None and after.links is not None and floor.links != after.links:
        kernels = f"{floor.links.all_reduce.kernel} to {after.links.all_reduce.kernel}"
        yield f"collectives change as public measurements do, from {kernels}"
    if floor.workload.batch != after.workload.batch:
        yield "sampling and host time are those of the measured batch: more requests need more"
    if floor.workload.draft_steps != after.workload.draft_steps:
        yield "idle time is that of the measured draft steps; a chain is drafted"
    if _formats(floor) != _formats(after):
        yield "accept lengths are those of the measured weights: other formats may change them"


def _formats(floor: RoundFloor) -> set[str]:
    return {matrix.format for matrix in floor.matrices}
