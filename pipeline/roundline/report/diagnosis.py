"""Renders `roundline doctor`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundline.report.documents import document
from roundline.report.tabular import render, visible

if TYPE_CHECKING:
    from roundline.warehouse.diagnosis import Completeness, Diagnosis, Finding


def render_diagnosis(diagnosis: Diagnosis, format_: str) -> str:
    """The findings as text, Markdown, CSV or a `roundline.doctor/1` document."""
    if format_ == "json":
        return document("doctor", **asdict(diagnosis))
    if format_ in ("csv", "markdown"):
        rows = [
            (f.severity, f.code, f.text, ", ".join(f.blocks), f.fix) for f in diagnosis.findings
        ]
        return render(("severity", "code", "what", "blocks", "fix"), rows, format_)
    capabilities = render(("capability", "state"), list(diagnosis.capabilities.items()), format_)
    findings = [line for finding in diagnosis.findings for line in _finding(finding)]
    heading = _ratios(diagnosis.completeness)
    return "\n".join([capabilities, *heading, "", *(findings or ["no findings"])])


def _finding(finding: Finding) -> list[str]:
    lines = [f"{finding.severity}: {visible(finding.text)} [{finding.code}]"]
    if finding.blocks:
        lines.append(f"  blocks: {', '.join(finding.blocks)}")
    return [*lines, f"  fix: {finding.fix}", ""]


def _ratios(completeness: Completeness) -> list[str]:
    ratios = asdict(completeness).items()
    return [
        f"{name.replace('_', ' ')}: {'nothing to compare' if ratio is None else f'{ratio:.1%}'}"
        for name, ratio in ratios
    ]
