"""Published captures against facts that were measured independently of Roundline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from roundline.errors import NoGpuActivityError
from roundline.readers.ingest import IngestOptions, ingest
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse

NSYS = (
    "nsys/mfu_2gpu_before.sqlite", "nsys/mfu_2gpu_after.sqlite", "nsys/saxpy_mpi_2022_2.sqlite",
    "nsys/fuser_h200_2024_6.sqlite", "nsys/fuser_h200_2025_1.sqlite",
)  # fmt: skip
TORCH = (
    "torch/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "torch/vllm_decode_full/graph_execution.json.gz",
    "torch/cuda_graph_nccl.json.gz", "torch/rope_profile.pt.trace.json",
    "torch/resnet50_2021.pt.trace.json.gz",
)  # fmt: skip


@pytest.fixture(scope="module")
def facts(shared: Path) -> dict[str, Any]:
    """Measured facts per file."""
    loaded: dict[str, Any] = json.loads((shared / "traces" / "facts.json").read_text())
    return loaded


@pytest.mark.parametrize("name", [*NSYS, *TORCH])
def test_sums_and_unions_equal_the_facts(
    name: str, facts: dict[str, Any], shared: Path, tmp_path: Path
) -> None:
    """Kernel count, raw sum and busy time per device are equal to the nanosecond."""
    expected = facts[name]
    result = ingest([shared / "traces" / name], tmp_path / "store", IngestOptions())
    assert (result.kernels, result.kernel_ns) == (expected["kernels"], expected["kernel_sum_ns"])
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        found = warehouse.execute(
            "SELECT kernels, kernel_sum_ns, kernel_busy_ns FROM ranks ORDER BY ALL"
        ).fetchall()
    devices = expected["per_device"].values()
    assert found == sorted((d["kernels"], d["sum_ns"], d["union_ns"]) for d in devices)


@pytest.mark.parametrize("name", NSYS)
def test_launches_join_without_growth(
    name: str, facts: dict[str, Any], shared: Path, tmp_path: Path
) -> None:
    """Each kernel finds at most one API call of its own process."""
    expected = facts[name]["join"]
    ingest([shared / "traces" / name], tmp_path / "store", IngestOptions())
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        joined = warehouse.execute(
            "SELECT count(*) FROM kernels JOIN api_calls USING (process_id, correlation_id)"
        ).fetchall()
    assert joined == [(expected["kernels_with_api_row"],)]


@pytest.mark.parametrize(("name", "kernels"), [(TORCH[0], 544), (TORCH[1], 421)])
def test_one_graph_launch_is_one_replay(
    name: str, kernels: int, shared: Path, tmp_path: Path
) -> None:
    """All kernels of the one launch of a real decode trace are one replay."""
    ingest([shared / "traces" / name], tmp_path / "store", IngestOptions())
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        launches = warehouse.execute("SELECT kernels FROM graph_launches").fetchall()
    assert launches == [(kernels,)]


def test_eight_ranks_pair_their_collectives(shared: Path, tmp_path: Path) -> None:
    """The 8-rank set becomes one capture; its collectives are paired over all ranks."""
    folder = shared / "traces" / "torch" / "dlrm_8rank"
    result = ingest([folder], tmp_path / "store", IngestOptions())
    assert result.ranks == tuple(range(8))
    with open_warehouse(open_store(tmp_path / "store")) as warehouse:
        unpaired, incomplete = warehouse.execute(
            """
            SELECT count(*) FILTER (WHERE ranks = 8 AND transfers < 8),
              count(*) FILTER (WHERE ranks <> 8)
            FROM (
              SELECT collective_id, count(*) AS ranks, count(transfer_ns) AS transfers
              FROM collectives WHERE transfer_ns IS NOT NULL GROUP BY collective_id
            )
            """
        ).fetchall()[0]
        paired = warehouse.execute(
            "SELECT count(DISTINCT collective_id) FROM collectives WHERE transfer_ns IS NOT NULL"
        ).fetchall()[0][0]
    assert (unpaired, incomplete) == (0, 0)
    assert paired > 0


@pytest.mark.parametrize("name", ["nsys/nvtx_only_2022_4.sqlite", "nsys/nvtx_only_2024_2_pqtdir"])
def test_ranges_alone_are_no_capture(name: str, shared: Path, tmp_path: Path) -> None:
    """A capture of NVTX ranges without CUDA is refused by name."""
    with pytest.raises(NoGpuActivityError, match="no GPU events"):
        ingest([shared / "traces" / name], tmp_path / "store", IngestOptions())
    assert list(tmp_path.iterdir()) == []
