"""alpha + beta x bytes of a capture's own collectives, paired over its ranks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from roundline.bandwidth.communication import Fit, Kernel, fit
from roundline.bandwidth.prediction import Messages, RoundFloor
from roundline.reconcile.exchanges import Exchange


@dataclass(frozen=True)
class CollectivePoint:
    """Equal messages, `count` a round: their mean transfer, and the fit there; ns."""

    phase: str
    message_bytes: int
    count: float
    measured_ns: float
    fitted_ns: float


@dataclass(frozen=True)
class CollectiveFit:
    """A fitted operation with its points; with one size alone, beta is 0."""

    operation: str
    fit: Fit
    points: tuple[CollectivePoint, ...]

    @property
    def sizes(self) -> int:
        """Different message sizes."""
        return len({point.message_bytes for point in self.points})


def fit_collectives(
    groups: tuple[Exchange, ...], floor: RoundFloor, notes: list[str]
) -> tuple[CollectiveFit, ...]:
    """One fit per operation, over the kernel kind that runs most of it."""
    fits = []
    for operation in ("all_reduce", "all_gather"):
        mine = [group for group in groups if group.operation == operation]
        fitted = _fit(operation, _most(mine), floor, notes) if mine else None
        if fitted is not None:
            fits.append(fitted)
    return tuple(fits)


def _most(groups: list[Exchange]) -> list[Exchange]:
    counts: dict[Kernel, float] = {}
    for group in groups:
        counts[group.kernel] = counts.get(group.kernel, 0.0) + group.count
    kernel = max(sorted(counts), key=lambda kind: counts[kind])
    return [group for group in groups if group.kernel == kernel]


def _fit(
    operation: str, groups: list[Exchange], floor: RoundFloor, notes: list[str]
) -> CollectiveFit | None:
    sized: list[tuple[Exchange, int]] = []
    for group in groups:
        size = _message_bytes(group, floor)
        if not group.paired:
            notes.append(f"{operation} in {group.phase}: not every rank was captured")
        elif size is None:
            notes.append(f"{operation} in {group.phase}: their sizes are not those of the model")
        else:
            sized.append((group, size))
    if not sized or floor.links is None:
        return None
    samples = [(size, ns) for group, size in sized for ns in group.transfers_ns]
    found = fit(samples, groups[0].kernel, floor.links.all_reduce.link)
    if len({size for _, size in sized}) == 1:
        notes.append(f"{operation}: one message size only, so all of its time is alpha")
    points = (_point(group, size, found) for group, size in sized)
    return CollectiveFit(operation, found, tuple(points))


def _point(group: Exchange, size: int, found: Fit) -> CollectivePoint:
    mean_ns = sum(group.transfers_ns) / len(group.transfers_ns)
    return CollectivePoint(group.phase, size, group.count, mean_ns, float(found.cost.time_ns(size)))


def _message_bytes(group: Exchange, floor: RoundFloor) -> int | None:
    """Size of the group's messages; None where the model demands other counts or mixed sizes."""
    demanded = [m for m in _demanded(group.phase, floor) if m.collective == group.operation]
    sizes = {m.message_bytes for m in demanded}
    if len(sizes) != 1 or sum(m.count for m in demanded) != group.count:
        return None
    return sizes.pop()


def _demanded(phase: str, floor: RoundFloor) -> list[Messages]:
    messages = [m for m in floor.counts.messages if (m.phase == "verify") == (phase == "verify")]
    if phase == "verify" or not floor.draft_passes:
        return messages
    each = len(messages) // len(floor.draft_passes)
    passes = [messages[i : i + each] for i in range(0, len(messages), each)] if each else []
    extends = floor.switches.draft_extend
    if phase == "draft_extend":
        return passes[-1] if passes and extends else []
    return list(chain.from_iterable(passes[:-1] if extends else passes))
