"""The drawn round is the attributed round, and outliers are what stands out."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from roundline.cli import main
from roundline.reconcile.spread import read_kernels, read_spread
from roundline.reconcile.timeline import MAX_STRETCHES, read_timelines
from roundline.simulate.session import SimulateOptions, simulate, write_capture
from roundline.store import open_store
from roundline.warehouse.build import open_warehouse

SMALL = SimulateOptions(rounds=6, model="qwen3.5-4b", flush_after=(3,))
SERVERS = {
    "two ranks of SGLang with a prompt": replace(SMALL, prefill_after=(1,)),
    "vLLM on eight ranks": replace(SMALL, engine="vllm", tp=8),
    "overlapping streams": replace(
        SMALL, model="qwen3-next-80b-a3b", gpu="h100", side_stream=True, overlap_ns=900
    ),
    "no drafts, no graphs": replace(SMALL, engine="plain-eager", tp=1),
}


@pytest.fixture(scope="module", params=SERVERS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated capture as a store."""
    folder = tmp_path_factory.mktemp("timeline")
    options = SERVERS[request.param]
    write_capture(options, simulate(options), folder / "capture")
    sources = sorted(map(str, (folder / "capture").glob("*.sqlite")))
    assert main(["ingest", *sources, "-o", str(folder / "store"), "-q"]) == 0
    return folder / "store"


def test_the_drawn_round_adds_up_to_its_attribution(store: Path) -> None:
    """Per rank, phase, step and category to the nanosecond, and idle time per cause."""
    with open_warehouse(open_store(store)) as warehouse:
        timelines = read_timelines(warehouse)
        ranks = {rank for (rank,) in warehouse.execute("SELECT rank FROM ranks").fetchall()}
        assert {t.rank for t in timelines} == ranks
        for t in timelines:
            assert sum(time.ns for time in t.times) == t.wall_ns
            assert _busy(warehouse, t.rank, t.round_id) == {
                (x.phase, x.draft_step, x.label): x.ns for x in t.times if not x.idle
            }
            causes: dict[str, int] = {}
            for x in t.times:
                if x.idle:
                    causes[x.label] = causes.get(x.label, 0) + x.ns
            assert _idle(warehouse, t.rank, t.round_id) == causes


def test_what_is_drawn_is_bounded_and_without_gaps(store: Path) -> None:
    """All ranks share one budget; every instant of the round is shown."""
    with open_warehouse(open_store(store)) as warehouse:
        timelines = read_timelines(warehouse)
    assert sum(len(t.stretches) for t in timelines) <= MAX_STRETCHES
    for t in timelines:
        assert (t.stretches[0].start_ns, t.stretches[-1].end_ns) == (0, t.wall_ns)
        pairs = pairwise(t.stretches)
        assert all(a.end_ns == b.start_ns for a, b in pairs)


def test_the_spread_has_every_round_and_the_kernels_all_that_is_large(store: Path) -> None:
    """Rounds in order with what leaves them out; kernels sorted, none above the round."""
    with open_warehouse(open_store(store)) as warehouse:
        spread, kernels = read_spread(warehouse, 0), read_kernels(warehouse, 0)
        rounds = warehouse.execute(
            "SELECT round_id, wall_ns, excluded_because FROM rounds WHERE rank = 0 ORDER BY 1"
        ).fetchall()
    assert [(r.round_id, r.wall_ns, r.excluded_because) for r in spread.rounds] == rounds
    assert [k.ms for k in kernels] == sorted((k.ms for k in kernels), reverse=True)
    assert sum(k.ms for k in kernels) <= max(wall for _, wall, _ in rounds) / 1e6


def test_outliers_lie_outside_tukeys_fences() -> None:
    """One long round among equal ones, and the term that made it long."""
    connection = duckdb.connect()
    connection.execute(
        """
        CREATE TABLE rounds AS
        SELECT 0 AS rank, i AS round_id, (1000000 + i + if(i = 7, 500000, 0))::BIGINT AS wall_ns,
          true AS steady, NULL::VARCHAR AS excluded_because
        FROM range(12) t(i)
        """
    )
    connection.execute(
        """
        CREATE TABLE round_terms AS
        SELECT 0 AS rank, round_id, 'weights' AS term, 900000 AS measured_ns FROM rounds
        UNION ALL
        SELECT 0, 7, 'copy', 500000
        """
    )
    spread = read_spread(connection, 0)
    (outlier,) = spread.outliers
    assert (outlier.round_id, outlier.term, spread.outlier_count) == (7, "copy", 1)
    assert outlier.term_above_mean_ms == pytest.approx(0.5 * 11 / 12)
    assert outlier.wall_ms == pytest.approx(1.500007)
    assert spread.high_fence_ms < outlier.wall_ms


def _busy(
    warehouse: duckdb.DuckDBPyConnection, rank: int, round_id: int
) -> dict[tuple[str, int | None, str], int]:
    rows = warehouse.execute(
        "SELECT phase, draft_step, category, exclusive_ns FROM round_attribution"
        " WHERE rank = ? AND round_id = ? AND exclusive_ns > 0",
        [rank, round_id],
    ).fetchall()
    return {(phase, step, category): ns for phase, step, category, ns in rows}


def _idle(warehouse: duckdb.DuckDBPyConnection, rank: int, round_id: int) -> dict[str, int]:
    rows = warehouse.execute(
        "SELECT cause, sum(idle_ns)::BIGINT FROM round_idle"
        " WHERE rank = ? AND round_id = ? AND idle_ns > 0 GROUP BY cause",
        [rank, round_id],
    ).fetchall()
    return dict(rows)
