"""Renders `roundline attribute`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundline.report.documents import document
from roundline.report.tabular import render

if TYPE_CHECKING:
    from roundline.warehouse.attribution import Attribution, RankAttribution
    from roundline.warehouse.explain import Explanation

_COLUMNS = ("rank", "phase", "draft_step", "category", "kernels", "sum_ms", "exclusive_ms", "share")


def render_attribution(attribution: Attribution, format_: str) -> str:
    """The attribution as a table, Markdown, CSV or a `roundline.attribute/1` document."""
    if format_ == "json":
        parts = asdict(attribution)
        return document("attribute", **parts)
    rows = [row for rank in attribution.ranks for row in _rows(rank)]
    table = render(_COLUMNS, rows, format_)
    if format_ == "csv":
        return table
    return "\n".join([*_heading(attribution), "", table, "", *_notes(attribution)])


def render_explanation(explanation: Explanation, format_: str) -> str:
    """All rules that match a name, the deciding one first."""
    if format_ == "json":
        return document("explain", **asdict(explanation))
    rows = [(m.rule, m.category, m.subcategory, m.pattern) for m in explanation.matches]
    table = render(("rule", "category", "subcategory", "pattern"), rows, format_)
    if format_ == "csv":
        return table
    decided = f"decided by rule {rows[0][0]}" if rows else "no rule matches"
    return f"{explanation.category}: {decided}\nmatched as: {explanation.normal_name}\n\n{table}"


def _rows(rank: RankAttribution) -> list[tuple[object, ...]]:
    wall = rank.wall_ms_mean or sum(line.exclusive_ms for line in rank.attribution)
    rows: list[tuple[object, ...]] = [
        (
            rank.rank, line.phase, line.draft_step, line.category, round(line.kernels_per_round, 1),
            f"{line.sum_ms:.3f}", f"{line.exclusive_ms:.3f}", _share(line.exclusive_ms, wall),
        )
        for line in rank.attribution
    ]  # fmt: skip
    rows += [
        (rank.rank, "idle", None, line.cause, None, None, f"{line.ms:.3f}", _share(line.ms, wall))
        for line in rank.idle
    ]
    return rows


def _share(ms: float, wall_ms: float) -> str:
    return f"{100 * ms / wall_ms:.1f} %" if wall_ms else ""


def _heading(attribution: Attribution) -> list[str]:
    rounds = attribution.rounds
    if rounds.refused_because:
        return [f"{rounds.refused_because}; totals of the whole capture by category"]
    excluded = ", ".join(f"{n} {why}" for why, n in rounds.excluded.items())
    lines = [
        f"{rounds.count} rounds, {rounds.steady} steady, by {rounds.evidence}"
        + (f" (left out: {excluded})" if excluded else "")
    ]
    lines += [
        f"rank {rank.rank}: mean wall {rank.wall_ms_mean:.3f} ms a round"
        for rank in attribution.ranks
        if rank.wall_ms_mean is not None
    ]
    return lines


def _notes(attribution: Attribution) -> list[str]:
    lines = [
        f"rank {rank.rank}: idle time withheld, {rank.idle_withheld_because}"
        for rank in attribution.ranks
        if rank.idle_withheld_because
    ]
    unknown = attribution.unclassified
    lines.append(f"unclassified: {100 * unknown.share:.2f} % of kernel time")
    lines += [f"  {name.ms:10.3f} ms  {name.name[:100]!r}" for name in unknown.names]
    return lines
