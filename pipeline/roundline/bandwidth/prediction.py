"""What the model says of one round: terms, draft passes, counts, totals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roundline.bandwidth import speculation
from roundline.bandwidth.architecture import Architecture, WeightMatrix
from roundline.bandwidth.communication import LinkCosts
from roundline.bandwidth.efficiency import Efficiency
from roundline.bandwidth.hardware import Gpu
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload

Phase = Literal["verify", "draft"]


@dataclass(frozen=True)
class Term:
    """One line of the prediction; times are rounded to whole ns."""

    term: str
    bytes: int
    floor_ns: int
    expected_ns: int

    @property
    def floor_ms(self) -> float:
        """Floor in ms."""
        return self.floor_ns / 1e6

    @property
    def expected_ms(self) -> float:
        """Expected time in ms."""
        return self.expected_ns / 1e6


@dataclass(frozen=True)
class DraftPass:
    """One draft pass over `tokens` tokens; its parts add up to its share of the `draft` term."""

    step: int
    tokens: int
    parts: tuple[Term, ...]

    @property
    def weight_bytes(self) -> int:
        """Weights of the pass, lm_head included, caches not."""
        return sum(part.bytes for part in self.parts if part.term in ("weights", "lm_head"))


@dataclass(frozen=True)
class GemmCount:
    """Multiplications by one kind of matrix in one phase of a round: a self-check for traces."""

    matrix: str
    phase: Phase
    count: int


@dataclass(frozen=True)
class Messages:
    """`count` equal collectives of one phase, each over `message_bytes`."""

    collective: Literal["all_reduce", "all_gather"]
    phase: Phase
    count: int
    message_bytes: int


@dataclass(frozen=True)
class RoundCounts:
    """What a trace of one round must contain; no messages on a single GPU."""

    lm_head_reads: int
    broadcasts: int
    messages: tuple[Messages, ...]
    gemms: tuple[GemmCount, ...]

    @property
    def all_reduces(self) -> int:
        """Sums over GPUs in one round."""
        return sum(m.count for m in self.messages if m.collective == "all_reduce")

    @property
    def all_gathers(self) -> int:
        """Gathers in one round: logits, and a sliced `fc`."""
        return sum(m.count for m in self.messages if m.collective == "all_gather")


@dataclass(frozen=True)
class RoundFloor:
    """The prediction of one round on one GPU.

    `terms` carry DESIGN's names; their integers add up to the totals exactly. `state_bytes` is the
    recurrent state of all requests on the GPU, touched `state_passes` times a round.
    `all_parameter_bytes` counts embedding and head too: published figures often divide by it.
    """

    model: Architecture
    gpu: Gpu
    workload: Workload
    switches: EngineSwitches
    efficiency: Efficiency
    links: LinkCosts | None
    terms: tuple[Term, ...]
    draft_passes: tuple[DraftPass, ...]
    matrices: tuple[WeightMatrix, ...]
    counts: RoundCounts
    state_bytes: int
    conv_state_bytes: int
    state_passes: int
    kv_bytes_per_token: int
    resident_bytes: int
    all_parameter_bytes: int
    assumptions: tuple[str, ...]

    def term(self, name: str) -> Term:
        """The term of that name."""
        return next(term for term in self.terms if term.term == name)

    @property
    def bytes(self) -> int:
        """Bytes of all terms."""
        return sum(term.bytes for term in self.terms)

    @property
    def floor_ns(self) -> int:
        """Floor of the round."""
        return sum(term.floor_ns for term in self.terms)

    @property
    def expected_ns(self) -> int:
        """Expected time of the round, without sampling, copies and idle time."""
        return sum(term.expected_ns for term in self.terms)

    @property
    def floor_ms(self) -> float:
        """Floor of the round in ms."""
        return self.floor_ns / 1e6

    @property
    def expected_ms(self) -> float:
        """Expected time of the round in ms."""
        return self.expected_ns / 1e6

    @property
    def mtp_pass_bytes(self) -> int:
        """Weights that one draft pass reads, lm_head included; 0 without drafts."""
        return self.draft_passes[0].weight_bytes if self.draft_passes else 0

    @property
    def max_accept_len(self) -> int:
        """Longest accept length, the bonus token included."""
        return self.workload.draft_steps + 1

    def tokens_per_s_at(
        self, accept_len: float, basis: Literal["expected", "floor"] = "expected"
    ) -> float:
        """Tokens per second of all requests at an accept length.

        Raises:
            UsageError: the length is outside 1 to K + 1.
        """
        speculation.check_acceptance(self.workload.draft_steps, accept_len, includes_bonus=True)
        round_ms = self.expected_ms if basis == "expected" else self.floor_ms
        return speculation.tokens_per_s(accept_len, round_ms, self.workload.batch)
