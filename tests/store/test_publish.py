"""A store is whole or not there, equal for equal input, and refused when it is anything else."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from roundline.errors import SourceError, StoreError
from roundline.readers.ingest import IngestOptions, ingest, open_or_ingest
from roundline.store import open_store
from roundline.store.manifest import MANIFEST
from roundline.store.publish import new_store
from roundline.store.schemas import SORT_KEYS, TABLES

Capture = Callable[..., Path]


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Write a torch trace with some kernels and their launches."""

    def write(name: str = "trace.json", kernels: int = 3, dur: int = 5) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        events = [event(i, dur) for i in range(kernels)] + [launch(i) for i in range(kernels)]
        random.Random(kernels).shuffle(events)
        path.write_text(json.dumps({"traceEvents": events}))
        return path

    return write


def event(index: int, dur: int) -> dict[str, object]:
    """One kernel."""
    return {"ph": "X", "cat": "kernel", "name": f"kernel {index % 7}", "pid": 0, "tid": 7,
            "ts": 1000 + 10 * index, "dur": dur,
            "args": {"device": 0, "stream": 7, "correlation": index + 1}}  # fmt: skip


def launch(index: int) -> dict[str, object]:
    """The call that launches it."""
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
            "ts": 990 + 10 * index, "dur": 2, "args": {"correlation": index + 1}}  # fmt: skip


def test_equal_input_gives_equal_bytes(capture: Capture, tmp_path: Path) -> None:
    """Two ingests of one capture differ in no byte, whatever the clock says."""
    source = capture(kernels=500)
    for name in ("a", "b"):
        ingest([source], tmp_path / name, IngestOptions())
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == sorted([MANIFEST, *(f"{table}.parquet" for table in TABLES)])
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_tables_have_their_schema_and_order(capture: Capture, tmp_path: Path) -> None:
    """Types, nullability and meanings are the contract's; rows stand in the promised order."""
    ingest([capture(kernels=200)], tmp_path / "s", IngestOptions())
    for name, schema in TABLES.items():
        table = pq.read_table(tmp_path / "s" / f"{name}.parquet")
        assert table.schema.equals(schema, check_metadata=True), name
        keys = [tuple((row[key] is not None, row[key]) for key in SORT_KEYS[name])
                for row in table.to_pylist()]  # fmt: skip
        assert keys == sorted(keys), name
    ids = pq.read_table(tmp_path / "s" / "kernels.parquet")["kernel_id"].to_pylist()
    assert ids == list(range(200))


def test_jobs_change_nothing(capture: Capture, tmp_path: Path) -> None:
    """Reading sources in parallel processes gives the same store."""
    sources = [capture(f"rank{rank}.json", kernels=20 + rank) for rank in range(3)]
    for jobs in (1, 2):
        ingest(sources, tmp_path / f"jobs{jobs}", IngestOptions(jobs=jobs))
    for path in (tmp_path / "jobs1").iterdir():
        assert path.read_bytes() == (tmp_path / "jobs2" / path.name).read_bytes()
    assert open_store(tmp_path / "jobs1").manifest.ranks == (0, 1, 2)


def test_a_failed_ingest_leaves_nothing(capture: Capture, tmp_path: Path) -> None:
    """An error on the way leaves neither a store nor a part of one."""
    good, bad = capture("rank0.json"), tmp_path / "rank1.json"
    bad.write_text('{"traceEvents": [{"ph": "X", "cat": "kernel", "na')
    with pytest.raises(SourceError):
        ingest([good, bad], tmp_path / "out" / "store", IngestOptions())
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failed_replacement_keeps_the_old_store(capture: Capture, tmp_path: Path) -> None:
    """With --force the old store is replaced only by a whole new one."""
    target = tmp_path / "store"
    ingest([capture()], target, IngestOptions())
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')
    with pytest.raises(SourceError):
        ingest([bad], target, IngestOptions(force=True))
    assert open_store(target).manifest.tables["kernels"] == 3


def test_force_replaces_stores_and_nothing_else(capture: Capture, tmp_path: Path) -> None:
    """A folder that is no store is never removed."""
    source, target = capture(), tmp_path / "photos"
    target.mkdir()
    (target / "holiday.jpg").write_bytes(b"precious")
    with pytest.raises(StoreError, match="is no store"):
        ingest([source], target, IngestOptions(force=True))
    assert (target / "holiday.jpg").read_bytes() == b"precious"


def test_an_existing_store_needs_force(capture: Capture, tmp_path: Path) -> None:
    """Nothing is overwritten without being asked."""
    ingest([capture()], tmp_path / "s", IngestOptions())
    with pytest.raises(StoreError, match="--force"):
        ingest([capture()], tmp_path / "s", IngestOptions())


@pytest.mark.parametrize("moment", range(6))
def test_a_killed_ingest_leaves_the_old_store_or_none(
    capture: Capture, tmp_path: Path, moment: int
) -> None:
    """SIGKILL at any moment: what is there is a whole store, and the next ingest cleans up."""
    source, target = capture(kernels=20_000), tmp_path / "out" / "store"
    old = moment % 2 == 0
    if old:
        ingest([capture("old.json")], target, IngestOptions())
    command = [sys.executable, "-m", "roundline", "ingest", str(source), "-o", str(target),
               "--force", "--quiet"]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/.store.partial-*/**/*")) and time.monotonic() < deadline:
        if process.poll() is not None:
            break
    time.sleep(0.04 * moment)
    process.send_signal(signal.SIGKILL)
    process.wait()
    if target.exists():
        assert open_store(target).manifest.tables["kernels"] in ((3, 20_000) if old else (20_000,))
    ingest([capture("new.json", kernels=5)], target, IngestOptions(force=True))
    assert [path.name for path in target.parent.iterdir()] == ["store"]
    assert open_store(target).manifest.tables["kernels"] == 5


def test_a_living_ingest_is_not_swept(tmp_path: Path) -> None:
    """Two ingests into one folder do not remove each other's work."""
    with new_store(tmp_path / "store", force=False) as first:
        (first / "work").write_text("mine")
        with new_store(tmp_path / "store", force=False) as second:
            (second / MANIFEST).write_text("{}")
        assert (first / "work").read_text() == "mine"
        shutil.rmtree(tmp_path / "store")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda store: (store / MANIFEST).unlink(), "is no store"),
        (lambda store: (store / "kernels.parquet").unlink(), "kernels missing"),
        (lambda store: (store / MANIFEST).write_text("{"), "damaged"),
        (lambda store: (store / MANIFEST).write_text("[]"), "damaged"),
        (lambda store: (store / MANIFEST).write_text('{"schema_version": 99}'), "update"),
        (lambda store: (store / MANIFEST).write_text('{"schema_version": "x"}'), "damaged"),
        (lambda store: (store / MANIFEST).write_text('{"schema_version": 1}'), "damaged"),
        (lambda store: (store / MANIFEST).write_bytes(b"\xff\xfe"), "damaged"),
        (shutil.rmtree, "is no store"),
    ],
)  # fmt: skip
def test_what_is_no_whole_store_is_refused(
    capture: Capture, tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    """Half a store, a newer store and no store get one line that says what to do."""
    target = tmp_path / "store"
    ingest([capture()], target, IngestOptions())
    damage(target)
    with pytest.raises(StoreError, match=message) as error:
        open_store(target)
    assert "\n" not in str(error.value)


def test_a_store_is_used_again_until_its_source_changes(capture: Capture, tmp_path: Path) -> None:
    """Files are ingested beside themselves once; a changed file is ingested anew."""
    said: list[str] = []
    options = IngestOptions(notice=said.append)
    source = capture()
    first = open_or_ingest([source], None, options)
    assert first.path == tmp_path / "trace.roundline"
    made = first.path.stat().st_ino
    assert open_or_ingest([source], None, options).path.stat().st_ino == made
    capture(dur=6)  # same size, other content
    again = open_or_ingest([source], None, options)
    assert again.path.stat().st_ino != made
    assert again.manifest.kernel_ns == 18_000


def test_a_store_whose_source_changed_is_said_to_be_stale(capture: Capture, tmp_path: Path) -> None:
    """A store is opened as it is, with a word when the file beside it is another by now."""
    said: list[str] = []
    options = IngestOptions(notice=said.append)
    source = capture()
    ingest([source], tmp_path / "s", IngestOptions())
    open_or_ingest([tmp_path / "s"], None, options)
    assert said == []
    capture(dur=6)
    later = (tmp_path / "s" / MANIFEST).stat().st_mtime + 5
    os.utime(source, (later, later))
    open_or_ingest([tmp_path / "s"], None, options)
    assert ["stale" in line for line in said] == [True]


def test_a_source_that_changes_while_it_is_read_is_refused(
    capture: Capture, tmp_path: Path
) -> None:
    """A capture that is still being written is no capture yet."""
    source = capture(kernels=50)

    def touch(done: int, total: int) -> None:
        os.utime(source, (1, 1))

    with pytest.raises(SourceError, match="changed while it was read"):
        ingest([source], tmp_path / "s", replace(IngestOptions(), progress=touch))
    assert not (tmp_path / "s").exists()
