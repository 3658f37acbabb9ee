"""What drafting must earn in a predicted round: break-even, and the next draft step."""

from __future__ import annotations

from dataclasses import dataclass, replace

from roundline.bandwidth import speculation
from roundline.bandwidth.prediction import RoundFloor
from roundline.bandwidth.round_floor import predict


@dataclass(frozen=True)
class SpeculationWorth:
    """Expected times in ms of plain decode, of this round and of one with a further draft step."""

    plain_ms: float
    round_ms: float
    next_round_ms: float

    @property
    def break_even_len(self) -> float:
        """Accept length above which this round beats plain decode."""
        return speculation.break_even_len(self.plain_ms, self.round_ms)

    @property
    def next_step_cost(self) -> float:
        """Relative cost of a further draft step: it pays if it lengthens a round by more."""
        return (self.next_round_ms - self.round_ms) / self.round_ms


def with_draft_steps(prediction: RoundFloor, draft_steps: int) -> RoundFloor:
    """The same round with another number of draft steps, drafted as a chain."""
    workload = replace(prediction.workload, draft_steps=draft_steps, num_draft_tokens=None)
    return predict(
        prediction.model, prediction.gpu, workload, prediction.switches,
        prediction.efficiency, prediction.links,
    )  # fmt: skip


def speculation_worth(prediction: RoundFloor) -> SpeculationWorth | None:
    """What the draft steps of a prediction must earn; None for plain decode.

    State passes that were given for this round hold for the others too.
    """
    steps = prediction.workload.draft_steps
    if not steps:
        return None
    plain, further = with_draft_steps(prediction, 0), with_draft_steps(prediction, steps + 1)
    return SpeculationWorth(plain.expected_ms, prediction.expected_ms, further.expected_ms)
