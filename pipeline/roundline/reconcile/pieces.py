"""The measured round in pieces that scale as one, and what the model says of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from roundline.bandwidth.prediction import Phase, RoundFloor
from roundline.reconcile.exchanges import Exchange
from roundline.reconcile.ledger import MEMORY_TERMS, TERMS
from roundline.reconcile.measured import MeasuredRank


@dataclass(frozen=True)
class Piece:
    """A part of a term, "" for all of it; `crosses` is True for traffic between GPUs."""

    term: str
    part: str
    ms: float
    crosses: bool = False

    @property
    def is_whole(self) -> bool:
        """True where the part stands for all of its term."""
        return self.part in ("", "collective")

    @property
    def is_memory(self) -> bool:
        """True where memory bandwidth rules it."""
        return (self.part or self.term) in MEMORY_TERMS


def pieces_of(measured: MeasuredRank, exchanges: tuple[Exchange, ...]) -> Iterator[Piece]:
    """The measured round in pieces that scale as one; they add up to its terms."""
    for term in TERMS:
        ms = measured.term_ms(term)
        if term == "collective":
            yield from _split("collective", ms, [e for e in exchanges if e.phase == "verify"])
        elif term == "draft" and measured.draft_parts:
            yield from _draft_pieces(measured, exchanges)
        else:
            yield Piece(term, "", ms)


def _draft_pieces(measured: MeasuredRank, exchanges: tuple[Exchange, ...]) -> Iterator[Piece]:
    mine = [e for e in exchanges if e.phase in ("draft", "draft_extend")]
    for part in measured.draft_parts:
        if part.part == "collective":
            yield from _split("draft", part.ms, mine)
        else:
            yield Piece("draft", part.part, part.ms)


def _split(term: str, ms: float, exchanges: list[Exchange]) -> Iterator[Piece]:
    """Exclusive time of collectives by operation and wait, as their raw durations are."""
    shares: dict[str, float] = {}
    for exchange in exchanges:
        name = exchange.operation
        shares[name] = shares.get(name, 0.0) + exchange.transfer_ms
        shares["wait"] = shares.get("wait", 0.0) + exchange.wait_ms
    total = sum(shares.values())
    if not total:
        yield Piece(term, "collective", ms, crosses=True)
    for part, share in shares.items() if total else ():
        yield Piece(term, part, ms * share / total, crosses=True)


@dataclass(frozen=True)
class Price:
    """What the model says of a piece; where it knows no time, anything it is proportional to."""

    floor_ms: float
    expected_ms: float


Prices = dict[tuple[str, str], Price]


def price_of(piece: Piece, floor: RoundFloor) -> Price | None:
    """The model's price of a piece; None where it has none, so that the piece is held."""
    prices, passes = prices_of(floor), len(floor.draft_passes)
    if piece.part == "collective":
        return _total(
            price
            for (term, part), price in prices.items()
            if term == piece.term and part.startswith("all_")
        )
    if (piece.term, piece.part) == ("draft", ""):
        return _total(price for key, price in prices.items() if key[0] == "draft")
    priced = prices.get((piece.term, piece.part))
    if priced is not None:
        return priced
    if piece.crosses and floor.links is None:
        return Price(0.0, 0.0)
    # what the model does not know happens once a draft pass; waits exist with the links
    return Price(0.0, float(passes)) if piece.term == "draft" else _waits(piece)


def _waits(piece: Piece) -> Price | None:
    return Price(0.0, 1.0) if piece.crosses else None


def prices_of(floor: RoundFloor) -> Prices:
    """Prices of all pieces that the model knows."""
    prices = {
        (t.term, ""): Price(t.floor_ms, t.expected_ms)
        for t in floor.terms
        if t.term not in ("collective", "draft")
    }
    for part in (part for each in floor.draft_passes for part in each.parts):
        if part.term != "collective":
            key = ("draft", "weights" if part.term == "lm_head" else part.term)
            _add(prices, key, Price(part.floor_ms, part.expected_ms))
    if floor.links is not None:
        _add_messages(prices, floor)
    return prices


_TERM_OF: Final[dict[Phase, str]] = {"verify": "collective", "draft": "draft"}


def _add_messages(prices: Prices, floor: RoundFloor) -> None:
    for m in floor.counts.messages:
        assert floor.links is not None
        cost = (
            floor.links.all_gather if m.collective == "all_gather"
            else floor.links.all_reduce_for(m.message_bytes)
        )  # fmt: skip
        expected_ms = float(m.count * cost.time_ns(m.message_bytes)) / 1e6
        _add(prices, (_TERM_OF[m.phase], m.collective), Price(0.0, expected_ms))


def _add(prices: Prices, key: tuple[str, str], price: Price) -> None:
    prices[key] = _total([prices.get(key, Price(0.0, 0.0)), price])


def _total(prices: Iterable[Price]) -> Price:
    listed = list(prices)
    return Price(sum(p.floor_ms for p in listed), sum(p.expected_ms for p in listed))
