"""Named cases have the figures that they were made to have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from roundline.errors import UnknownNameError
from roundline.simulate.cases import write_case
from roundline.simulate.truth import CaptureTruth


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> CaptureTruth:
    """The 4B hybrid on one GH200."""
    return write_case("nextn-study", tmp_path_factory.mktemp("study"))


def test_the_head_is_a_sixth_of_the_cycle(study: CaptureTruth) -> None:
    """17.2 % of the round, three quarters of it in the drafts."""
    head: Counter[str] = Counter()
    for item in study.activities:
        if item.round_id is not None and item.activity.truth.matrix == "lm_head":
            head[item.activity.truth.phase] += item.exclusive_ns
    wall_ns = sum(r.wall_ns for r in study.rounds)
    assert sum(head.values()) / wall_ns == pytest.approx(0.172, abs=0.003)
    assert 1 - head["verify"] / sum(head.values()) == pytest.approx(0.75, abs=0.01)


def test_the_host_owns_three_milliseconds_a_round(study: CaptureTruth) -> None:
    """Most of it under the attention plan, the rest under copies to the host."""
    late: Counter[str | None] = Counter()
    for item in study.rounds:
        for idle in item.idle:
            if idle.cause == "host_late":
                late[idle.host_range] += idle.idle_ns
    each_ms = {name: ns / len(study.rounds) / 1e6 for name, ns in late.items()}
    assert sum(each_ms.values()) == pytest.approx(3.0, abs=0.2)
    assert (
        max(each_ms, key=lambda name: each_ms[name]) == "BatchPrefillWithPagedKVCacheWrapper.plan"
    )


def test_graph_launches_lead_by_45_and_400_microseconds(study: CaptureTruth) -> None:
    """The host runs just ahead of the GPU, by the size of the graph."""
    leads: dict[int, list[int]] = {}
    for launch in study.graph_launches:
        leads.setdefault(launch.kernels, []).append(launch.lead_ns)
    means = sorted(sum(leads[k]) / len(leads[k]) for k in leads if len(leads[k]) > 10)
    assert means[-1] == pytest.approx(400_000, rel=0.05)
    assert any(mean == pytest.approx(45_000, rel=0.1) for mean in means)


def test_an_unknown_case_is_refused(tmp_path: Path) -> None:
    """The message lists what there is."""
    with pytest.raises(UnknownNameError, match="worked-example"):
        write_case("worked-exmple", tmp_path)
