"""Damaged captures end in events or in one error of ours, never in a traceback.

`ROUNDLINE_MUTATIONS=20000` turns the check into a soak.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest
from nsys_exports import (
    KERNEL,
    kernel,
    metadata,
    two_processes,
    write_arrowdir,
    write_parquetdir,
    write_sqlite,
)

from roundline.errors import RoundlineError
from roundline.readers.contract import ReadOptions, part_schema
from roundline.readers.ingest import READERS
from roundline.readers.sniff import sniff

MUTATIONS = int(os.environ.get("ROUNDLINE_MUTATIONS", "500"))
PORTION = 50
LOG = (
    "[2026-06-01 12:00:{second:02d} TP0] Decode batch, #running-req: 1, #token: {tokens}, token"
    " usage: 0.01, accept len: 3.00, accept rate: 0.67, cuda graph: True, gen throughput"
    " (token/s): 60.00, #queue-req: 0\n"
    "INFO 08-17 19:55:36 Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation"
    " throughput: 50.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs\n"
    "INFO SpecDecoding metrics: Mean acceptance length: 2.50, Accepted throughput: 60.00 tokens/s,"
    " Drafted throughput: 80.00 tokens/s, Accepted: 600 tokens, Drafted: 800 tokens, Per-position"
    " acceptance rate: 0.800, 0.700, Avg Draft acceptance rate: 75.0%\n"
    "iter = {second}, global_rank = 0, rank = 0, currank_total_requests = 1/1, host_step_time ="
    " 12.6ms, prev_device_step_time = 12.2ms, timestamp = 2026-02-03 04:05:07,"
    " num_scheduled_requests: 1, states = {{'num_ctx_requests': 0, 'num_generation_tokens': 4}}\n"
    "eval time = 12000.00 ms / 600 tokens (20.00 ms per token, 50.00 tokens per second)\n"
    "draft acceptance = 0.66667 (  400 accepted /   600 generated), mean len =  3.00\n"
)


class CheckingSink:
    """Takes batches as the store would: columns of the part, castable, nothing missing."""

    def write(self, table: str, batch: pa.RecordBatch | pa.Table) -> None:
        """Check a batch against the part's schema."""
        for field in part_schema(table):
            if field.name in batch.schema.names:
                column = batch.column(field.name).cast(field.type)
                assert field.nullable or not column.null_count, (table, field.name)
            else:
                assert field.nullable, (table, field.name)


def mutated(data: bytes, random_: random.Random) -> bytes:
    """Flip, cut, insert and repeat."""
    result = bytearray(data)
    for _ in range(random_.choice((1, 1, 2, 5, 20))):
        place = random_.randrange(len(result) + 1)
        length = random_.choice((1, 4, 64, 1000))
        change = random_.randrange(6)
        if change == 0:
            result[place : place + 1] = random_.randbytes(1)
        elif change == 1:
            result[place : place + 8] = random_.randbytes(8)
        elif change == 2:
            del result[place : place + length]
        elif change == 3:
            result[place:place] = result[place : place + length]
        elif change == 4:
            result[place : place + length] = b"\xff" * length
        elif random_.random() < 0.2:
            del result[place:]
    return bytes(result)


def trace() -> bytes:
    """A torch trace with nesting, text and every kind of event."""
    events = [
        {"ph": "X", "cat": cat, "name": f"{cat} <{i}>", "pid": 1, "tid": 7, "ts": 1e6 + i / 3,
         "dur": 2.125, "args": {"device": 0, "stream": 7, "correlation": i, "grid": [1, 2, 3],
                                "External id": i, "bytes": 64}}
        for i in range(60)
        for cat in ("kernel", "cuda_runtime", "gpu_memcpy", "user_annotation", "overhead")
    ]  # fmt: skip
    head = {"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "baseTimeNanoseconds": 10**18}
    return json.dumps({**head, "traceEvents": events, "distributedInfo": {"rank": 1}}).encode()


def samples(folder: Path) -> dict[str, Path]:
    """One good capture of every kind."""
    tables = two_processes() | metadata(EXPORT_SCHEMA_VERSION="3.24.0")
    tables[KERNEL] = [*tables[KERNEL], *(kernel(i) for i in range(100, 200))]
    files = {
        "trace.json": trace(),
        "trace.json.gz": gzip.compress(trace(), mtime=0),
        "server.log": "".join(
            LOG.format(second=s, tokens=1000 + 60 * s) for s in range(0, 60, 2)
        ).encode(),
    }  # fmt: skip
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return {
        "sqlite": write_sqlite(folder / "export.sqlite", tables),
        "parquetdir": write_parquetdir(folder / "parquetdir", tables),
        "arrowdir": write_arrowdir(folder / "arrowdir", tables),
        **{name: folder / name for name in files},
    }


def read(path: Path, options: ReadOptions) -> str:
    """Read a source as ingest would; the message where it is refused."""
    try:
        module, function = READERS[sniff(path)]
        reader = getattr(import_module(f"roundline.readers.{module}"), function)
        reader(path, CheckingSink(), options)
    except RoundlineError as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Good captures by kind."""
    return samples(tmp_path_factory.mktemp("originals"))


def test_undamaged_captures_are_read(originals: dict[str, Path]) -> None:
    """What is mutated below is good before."""
    for name, original in originals.items():
        assert read(original, ReadOptions()) == "", name


@pytest.mark.parametrize("portion", range(MUTATIONS // PORTION))
def test_damage_never_ends_in_a_traceback(
    tmp_path: Path, originals: dict[str, Path], portion: int
) -> None:
    """Bytes flipped, cut and repeated in every kind of capture: events, or one error of ours."""
    forgiving = portion % 2 == 1
    options = ReadOptions(forgiving, forgiving, forgiving)
    damaged = tmp_path / "damaged"
    for seed in range(portion * PORTION, (portion + 1) * PORTION):
        random_ = random.Random(seed)
        original = originals[random_.choice(sorted(originals))]
        if original.is_dir():
            shutil.copytree(original, damaged)
            victim = random_.choice(sorted(damaged.iterdir()))
            victim.write_bytes(mutated(victim.read_bytes(), random_))
            read(damaged, options)
            shutil.rmtree(damaged)
        else:
            damaged.write_bytes(mutated(original.read_bytes(), random_))
            read(damaged, options)
            damaged.unlink()
