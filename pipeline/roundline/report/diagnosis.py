"""Renders `roundline doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundline.report.documents import document
from roundline.report.tabular import render

if TYPE_CHECKING:
    from roundline.warehouse.diagnosis import Completeness, Diagnosis


def render_diagnosis(diagnosis: Diagnosis, format_: str) -> str:
    """The findings as text, Markdown, CSV or a `roundline.doctor/1` document."""
    if format_ == "json":
        return document("doctor", **asdict(diagnosis))
    findings = [
        (f.severity, f.code, f.text, ", ".join(f.blocks), f.fix) for f in diagnosis.findings
    ]
    table = render(("severity", "code", "what", "blocks", "fix"), findings, format_)
    if format_ == "csv":
        return table
    capabilities = render(("capability", "state"), list(diagnosis.capabilities.items()), format_)
    heading = _ratios(diagnosis.completeness)
    return "\n".join([capabilities, "", *heading, "", table if findings else "no findings"])


def _ratios(completeness: Completeness) -> list[str]:
    ratios = asdict(completeness).items()
    return [
        f"{name.replace('_', ' ')}: {'nothing to compare' if ratio is None else f'{ratio:.1%}'}"
        for name, ratio in ratios
    ]
