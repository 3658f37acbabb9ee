"""One round of every rank as strips: phases, categories, idle time by cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Final

from roundline.report.html_markup import Child, Markup, element, join, name
from roundline.report.html_tables import Column, Table, rows
from roundline.report.svg import Drawing, axis, bar, box, colour, label, phase_colour, strip

if TYPE_CHECKING:
    from roundline.reconcile.sweep import Stretch
    from roundline.reconcile.timeline import RoundTimeline

_BLOCK: Final = 100.0
_PHONE: Final = 340  # pixels of a picture there; names that need more are left out
_VISIBLE: Final = 0.005  # of the round: idle stretches from here on have a tooltip of their own


def timeline_drawing(timelines: tuple[RoundTimeline, ...]) -> Drawing:
    """A block per rank on one axis of time, each rank from its own anchor."""
    limit_ns = max(t.wall_ns for t in timelines)
    blocks = [_block(t, limit_ns, _BLOCK * i) for i, t in enumerate(timelines)]
    bottom = _BLOCK * len(timelines) - 6
    return Drawing(
        id="timeline-picture",
        title="One round of every rank",
        description="; ".join(map(_words, timelines)),
        height=bottom + 20,
        shapes=join([axis(limit_ns / 1e6, 0, bottom, "ms"), *blocks]),
        keys=_keys(timelines[0]),
    )


def _block(timeline: RoundTimeline, limit_ns: int, top: float) -> Markup:
    heading = f"rank {timeline.rank}, round {timeline.round_id}: {timeline.wall_ns / 1e6:.2f} ms"
    shapes: list[Child] = [
        label(0, top + 13, heading, class_="name"),
        *_phases(timeline.stretches, limit_ns, top + 20),
        *_strips(timeline, limit_ns, top + 42, idle=False, height=28),
        bar(0, timeline.wall_ns / limit_ns, top + 73, 14, "track"),
        *_strips(timeline, limit_ns, top + 73, idle=True, height=14),
        *_long_idle(timeline.stretches, limit_ns, top + 73),
    ]
    return join(shapes)


def _phases(stretches: tuple[Stretch, ...], limit_ns: int, top: float) -> Iterable[Markup]:
    for (phase, step), members in groupby(stretches, key=lambda s: (s.phase, s.draft_step)):
        run = list(members)
        start, end = run[0].start_ns, run[-1].end_ns
        width = (end - start) / limit_ns
        text = phase_name(phase, step)
        yield bar(
            start / limit_ns, width, top, 20, f"{phase_colour(phase)} phase",
            f"{text}: {(end - start) / 1e6:.3f} ms from {start / 1e6:.3f} ms",
        )  # fmt: skip
        if width > 0.03:
            fits = width * _PHONE > 6.5 * len(text) + 6
            inner = element(
                "text", text, x="4", y="14", class_="on-phase" if fits else "on-phase roomy"
            )
            yield box(start / limit_ns, width, top, 20, inner)


def _strips(
    timeline: RoundTimeline, limit_ns: int, top: float, *, idle: bool, height: float
) -> Iterable[Markup]:
    pieces: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for s in timeline.stretches:
        if s.idle == idle:
            pieces[s.label].append((s.start_ns, s.end_ns))
    sums = label_sums(timeline, idle=idle)
    for text in sorted(pieces, key=lambda text: (-sums.get(text, 0), text)):
        title = f"{'idle: ' if idle else ''}{text}: {sums.get(text, 0) / 1e6:.3f} ms in the round"
        yield strip(pieces[text], limit_ns, top, height, colour(text), title)


def _long_idle(stretches: tuple[Stretch, ...], limit_ns: int, top: float) -> Iterable[Markup]:
    for s in stretches:
        if s.idle and s.ns >= _VISIBLE * limit_ns:
            inside = f", host in {name_text(s.host_range)}" if s.host_range else ""
            title = f"idle {s.ns / 1e6:.3f} ms before {s.phase}: {s.label}{inside}"
            yield bar(s.start_ns / limit_ns, s.ns / limit_ns, top, 14, colour(s.label), title)


def name_text(text: str) -> str:
    """A name short enough for a tooltip."""
    return text if len(text) <= 120 else text[:119] + "…"


def phase_name(phase: str, step: int | None) -> str:
    """A phase with its draft step."""
    return phase if step is None else f"{phase} {step}"


def label_sums(timeline: RoundTimeline, *, idle: bool) -> dict[str, int]:
    """Exact ns per category, or per cause of idleness."""
    sums: dict[str, int] = {}
    for t in timeline.times:
        if t.idle == idle:
            sums[t.label] = sums.get(t.label, 0) + t.ns
    return sums


def _words(timeline: RoundTimeline) -> str:
    phases: dict[str, int] = {}
    for t in timeline.times:
        text = phase_name(t.phase, t.draft_step)
        phases[text] = phases.get(text, 0) + t.ns
    listed = ", ".join(f"{text} {ns / 1e6:.2f} ms" for text, ns in phases.items())
    idle = sum(t.ns for t in timeline.times if t.idle)
    return f"rank {timeline.rank}: {listed}; of these idle {idle / 1e6:.2f} ms"


def _keys(timeline: RoundTimeline) -> tuple[tuple[str, str], ...]:
    """(class, text) of everything that the strips of a rank show, the longest first."""
    return tuple(
        (colour(text), f"{'idle: ' if idle else ''}{text} {ns / 1e6:.2f} ms")
        for idle in (False, True)
        for text, ns in sorted(
            label_sums(timeline, idle=idle).items(), key=lambda item: (-item[1], item[0])
        )
    )


def timeline_table(timelines: tuple[RoundTimeline, ...]) -> Table:
    """The same round in numbers: one row per phase and category or cause."""
    cells: dict[tuple[str, str], list[int]] = {}
    for i, timeline in enumerate(timelines):
        for t in timeline.times:
            what = f"idle: {t.label}" if t.idle else t.label
            row = cells.setdefault((phase_name(t.phase, t.draft_step), what), [0] * len(timelines))
            row[i] += t.ns
    return Table(
        id="round",
        caption="The drawn round: one row per phase and category or cause of idle time, ms",
        columns=[
            Column("phase"),
            Column("what"),
            *[Column(f"rank {t.rank}", numeric=True) for t in timelines],
        ],
        groups=rows(
            [
                (phase, name(what), *[f"{ns / 1e6:.3f}" for ns in sums])
                for (phase, what), sums in cells.items()
            ]
        ),
        total=("round", "", *[f"{t.wall_ns / 1e6:.3f}" for t in timelines]),
    )
