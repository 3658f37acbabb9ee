"""Every layout of a torch trace reads back as the same capture."""

from __future__ import annotations

from pathlib import Path

import pytest

from roundline.readers.ingest import IngestOptions, ingest
from roundline.simulate.session import SimulateOptions, simulate
from roundline.simulate.timeline import Capture, Kernel
from roundline.simulate.torch_layouts import Layout, write_torch_layout
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse


@pytest.fixture(scope="module")
def capture() -> Capture:
    """One round on two ranks that both call their GPU 0."""
    return simulate(SimulateOptions(model="qwen3.5-4b", rounds=1, own_device_ids=True))


@pytest.mark.parametrize(
    "layout", ["python-export", "cupti-monitor", "dumped", "indented", "merged"]
)
def test_kernels_and_replays_read_back(layout: Layout, capture: Capture, tmp_path: Path) -> None:
    """Same kernels on each rank, same graph replays, whoever wrote the file."""
    sources = write_torch_layout(capture, tmp_path, layout)
    ingest(sources, tmp_path / "store", IngestOptions())
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        found = warehouse.execute(
            "SELECT rank, count(*), sum(end_ns - start_ns)::BIGINT FROM kernels "
            "GROUP BY rank ORDER BY rank"
        ).fetchall()
        [(launches,)] = warehouse.execute("SELECT count(*) FROM graph_launches").fetchall()
    expected = []
    for trace in capture.ranks:
        kernels = [a for a in trace.activities if isinstance(a, Kernel)]
        expected.append((trace.rank, len(kernels), sum(k.duration_ns for k in kernels)))
    assert found == expected
    calls = {(t.rank, c.correlation_id) for t in capture.ranks for c in t.api_calls}
    replays = {(t.rank, a.replay_id) for t, a in capture.activities() if a.graph_id is not None}
    assert launches == len(replays & calls)
