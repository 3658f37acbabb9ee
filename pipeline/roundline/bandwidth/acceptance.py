"""What an accept length and an accept rate mean, by engine, by version and by the numbers.

The accept length L is the mean number of tokens that a request emits per round, the bonus token
included: 1 <= L <= K + 1 for a chain of K draft tokens. Engines disagree on the rate, so a rate is
never used without its definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isfinite, prod
from typing import Final

from roundline.errors import UsageError


@dataclass(frozen=True)
class RateDefinition:
    """What an engine prints as accept rate, as a function of length L and K draft tokens."""

    name: str
    formula: str
    rate_of: Callable[[float, int], float]
    length_of: Callable[[float, int], float]


PER_DRAFT: Final = RateDefinition(
    "accepted_per_draft", "(L - 1) / K: accepted drafts per drafted token, no bonus",
    lambda length, drafts: (length - 1) / drafts, lambda rate, drafts: 1 + rate * drafts,
)  # fmt: skip
PER_VERIFIED: Final = RateDefinition(
    "emitted_per_verified", "L / (K + 1): emitted tokens per verified token, bonus counted",
    lambda length, drafts: length / (drafts + 1), lambda rate, drafts: rate * (drafts + 1),
)  # fmt: skip
DEFINITIONS: Final = (PER_DRAFT, PER_VERIFIED)


def rate_definition(engine: str, version: str | None = None) -> RateDefinition | None:
    """The accept rate that a version of an engine prints; None where it prints none.

    SGLang printed none to 0.5.3, L / verified tokens to 0.5.10, (L - 1) / K from 0.5.11. vLLM and
    llama.cpp print accepted / drafted; TensorRT-LLM prints no rate. Without a version the newest.
    """
    plain = engine.lower().replace("-", "").replace(".", "")
    if plain in ("vllm", "llamacpp"):
        return PER_DRAFT
    if plain != "sglang":
        return None
    release = _release(version) if version else (inf,)
    if release < (0, 5, 4):
        return None
    return PER_VERIFIED if release < (0, 5, 11) else PER_DRAFT


def length_includes_bonus(engine: str, version: str | None = None) -> bool:
    """False only for vLLM before 0.9, whose acceptance length counted accepted drafts alone."""
    if engine.lower() != "vllm" or version is None:
        return True
    return _release(version) >= (0, 9)


def _release(version: str) -> tuple[float, ...]:
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", version.strip())
    if not numbers:
        raise UsageError(f"version {version!r}: expected digits such as 0.5.11")
    return tuple(map(int, numbers[1].split(".")))


@dataclass(frozen=True)
class Acceptance:
    """An acceptance that was checked: `accept_len` includes the bonus token.

    `accept_rate` is as printed, `draft_rate` is (L - 1) / K. `definition` is None where no rate was
    given. `findings` are sentences.
    """

    accept_len: float
    draft_steps: int
    draft_tokens: int
    accept_rate: float | None
    definition: RateDefinition | None
    includes_bonus: bool
    implied_len_from_rate: float | None
    findings: tuple[str, ...]

    @property
    def max_len(self) -> int:
        """Longest emission of one round: all drafts along one path and the bonus token."""
        return self.draft_steps + 1

    @property
    def draft_rate(self) -> float | None:
        """Accepted drafts per drafted token; None without drafts."""
        return (self.accept_len - 1) / self.draft_tokens if self.draft_tokens else None


def check_acceptance(
    draft_steps: int,
    accept_len: float,
    accept_rate: float | None = None,
    num_draft_tokens: int | None = None,
    includes_bonus: bool | None = None,
    resolution: float = 0.005,
) -> Acceptance:
    """Find out what a printed length and rate mean, and refuse what cannot be.

    Args:
        draft_steps: K, tokens along one draft path.
        accept_len: the printed mean length, with or without the bonus token.
        accept_rate: the printed rate, between 0 and 1.
        num_draft_tokens: tokens that one verification checks; K + 1 unless a tree is drafted.
        includes_bonus: whether the length counts the bonus token; None to find out.
        resolution: half a unit of the last printed digit of both numbers.

    Raises:
        UsageError: a rate above 1, a length above K + 1, or a length that no reading makes >= 1.
    """
    drafts = (num_draft_tokens or draft_steps + 1) - 1
    _refuse_impossible(draft_steps, accept_len, accept_rate)
    includes, definition, findings = _interpret(
        accept_len, accept_rate, draft_steps, drafts, resolution, includes_bonus
    )
    length = accept_len if includes else accept_len + 1
    if not 1 - resolution <= length <= draft_steps + 1 + resolution:
        raise UsageError(
            f"accept length {length:g} is outside 1 to {draft_steps + 1}, the bonus token included"
        )
    implied = None
    if definition is not None and accept_rate is not None:
        implied = definition.length_of(accept_rate, drafts)
    return Acceptance(
        accept_len=length,
        draft_steps=draft_steps,
        draft_tokens=drafts,
        accept_rate=accept_rate,
        definition=definition,
        includes_bonus=includes,
        implied_len_from_rate=implied,
        findings=findings,
    )


def _refuse_impossible(draft_steps: int, accept_len: float, accept_rate: float | None) -> None:
    if draft_steps < 0:
        raise UsageError(f"{draft_steps} draft steps: there cannot be fewer than 0")
    if not isfinite(accept_len) or accept_len < 0:
        raise UsageError(f"accept length {accept_len:g}: expected a number from 1 to K + 1")
    if accept_len > draft_steps + 1.005:
        raise UsageError(
            f"accept length {accept_len:g} is above {draft_steps + 1}, the most that {draft_steps} "
            "draft steps and the bonus token can emit: check --draft-steps"
        )
    if accept_rate is not None and not 0 <= accept_rate <= 1:
        raise UsageError(
            f"accept rate {accept_rate:g} is outside 0 to 1: it is a share, and some SGLang "
            "releases printed impossible ones"
        )
    if accept_rate is not None and not draft_steps:
        raise UsageError(f"accept rate {accept_rate:g} without draft steps: nothing was drafted")


_Reading = tuple[bool, RateDefinition | None, tuple[str, ...]]


def _interpret(
    length: float,
    rate: float | None,
    draft_steps: int,
    drafts: int,
    resolution: float,
    includes_bonus: bool | None,
) -> _Reading:
    if rate is None:
        includes = length >= 1 - resolution if includes_bonus is None else includes_bonus
        return includes, None, () if includes else (_EXCLUDES_BONUS,)
    tolerance = resolution * (1 + 1 / drafts)
    fitting = [
        (includes, definition)
        for includes in ((True, False) if includes_bonus is None else (includes_bonus,))
        for definition in DEFINITIONS
        if length + (not includes) <= draft_steps + 1 + resolution
        and abs(definition.rate_of(length + (not includes), drafts) - rate) <= tolerance
    ]
    if not fitting:
        return includes_bonus is not False, None, (_contradiction(length, rate, drafts),)
    findings = [] if fitting[0][0] else [_EXCLUDES_BONUS]
    if len({definition.name for _, definition in fitting}) > 1:
        findings.append(f"accept rate {rate:g} fits more than one definition")
    return *fitting[0], tuple(findings)


_EXCLUDES_BONUS: Final = "the accept length excludes the bonus token: 1 was added"


def _contradiction(length: float, rate: float, drafts: int) -> str:
    implied = ", ".join(f"{d.length_of(rate, drafts):.2f} by {d.formula}" for d in DEFINITIONS)
    return (
        f"accept length {length:g} and rate {rate:g} fit no known definition: the rate means "
        f"{implied}"
    )


def length_from_counts(accepted: int, rounds: int) -> float:
    """Accept length of counters: `rounds` verifications accepted `accepted` drafts in all.

    Rounds, not drafted / K: drafts may be shorter than K.

    Raises:
        UsageError: there was no round, or a count is negative.
    """
    if rounds < 1 or accepted < 0:
        raise UsageError(f"{accepted} accepted drafts in {rounds} rounds: no length follows")
    return 1 + accepted / rounds


def rate_from_counts(accepted: int, drafted: int) -> float:
    """Accepted drafts per drafted token.

    Raises:
        UsageError: more was accepted than drafted, or nothing was drafted.
    """
    if drafted < 1 or not 0 <= accepted <= drafted:
        raise UsageError(f"{accepted} accepted of {drafted} drafted tokens: no rate follows")
    return accepted / drafted


def length_from_positions(rates: Sequence[float], conditional: bool = False) -> float:
    """Accept length of per-position rates: E = 1 + sum of c_j.

    Args:
        rates: share of rounds that accept position j (vLLM, llama.cpp), or if `conditional` the
            share among rounds that accepted all before, a_j, of which c_j is the product.
        conditional: which of the two.

    Raises:
        UsageError: a rate is outside 0 to 1, or an unconditional rate rises with its position.
    """
    if any(not 0 <= rate <= 1 for rate in rates):
        raise UsageError(f"per-position rates {list(rates)}: each is a share from 0 to 1")
    if conditional:
        return 1 + sum(prod(rates[: j + 1]) for j in range(len(rates)))
    if any(later > earlier + 0.005 for earlier, later in pairwise(rates)):
        raise UsageError(f"per-position rates {list(rates)} rise, so they are conditional: say so")
    return 1 + sum(rates)
