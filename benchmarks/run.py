"""`make bench`: speed and memory as ratios to the floor of the same machine in the same run.

Every measurement is a process of its own, so that peak memory is that of the command and CPU
time includes all of its threads. Nothing here asserts a time: machines differ, ratios are for
people to compare between two revisions.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCALES = {"quick": (60_000, 120_000), "full": (615_000, 2_000_000)}


@dataclass(frozen=True)
class Measurement:
    """CPU seconds of a process with its children, wall seconds, and its peak memory."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def measure(command: Sequence[str]) -> Measurement:
    """Run a command to its end and measure it; its output is dropped.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    code = (
        "import json,resource,subprocess,sys,time; t=time.monotonic();"
        "subprocess.run(sys.argv[1:],check=True,stdout=subprocess.DEVNULL);"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([u.ru_utime+u.ru_stime,time.monotonic()-t,u.ru_maxrss]))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True
    ).stdout
    cpu, wall, peak_kb = json.loads(output)
    return Measurement(cpu, wall, peak_kb / 1024)


def python(code: str, *arguments: object) -> list[str]:
    """A command that runs a line of Python."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def roundline(*arguments: object) -> list[str]:
    """A command line of Roundline."""
    return [sys.executable, "-m", "roundline", *map(str, arguments)]


def show(label: str, found: Measurement, work: str, floor: Measurement | None = None) -> None:
    """Print one line."""
    ratio = f"{found.cpu_s / floor.cpu_s:5.1f} x floor" if floor else "        floor"
    print(
        f"{label:<44}{found.cpu_s:7.2f} CPU s {found.wall_s:7.2f} s {found.peak_mb:7.0f} MB"
        f"  {ratio}  {work}",
        flush=True,
    )


def bench_torch(folder: Path, kernels: int) -> None:
    """Ingest a torch trace; the floor is inflating it."""
    from roundline.simulate.session import SimulateOptions, write_bulk

    written = write_bulk(SimulateOptions(tp=1), folder, kernels, "torch")
    (trace,) = folder.glob("*.json*")
    plain = folder / "plain.json"
    inflate = (
        "import gzip,shutil,sys; shutil.copyfileobj(gzip.open(sys.argv[1]), open('/dev/null','wb'))"
    )
    if trace.suffix == ".gz":
        with gzip.open(trace) as source, plain.open("wb") as target:
            while chunk := source.read(1 << 20):
                target.write(chunk)
    size_mb = (plain if plain.exists() else trace).stat().st_size / 1e6
    plain.unlink(missing_ok=True)
    floor = measure(python(inflate, trace))
    show(f"torch {size_mb:,.0f} MB: inflate alone", floor, f"{size_mb / floor.cpu_s:,.0f} MB/CPU s")
    store = folder / "store.roundline"
    found = measure(roundline("ingest", trace, "-o", store, "-q"))
    work = f"{size_mb / found.cpu_s:,.0f} MB/CPU s, {written:,} kernels"
    show("torch: ingest", found, work, floor)
    found = measure(roundline("attribute", store, "-q", "-o", folder / "a.txt"))
    show("torch: attribute", found, f"{written / found.cpu_s:,.0f} kernels/CPU s", floor)


def bench_nsys(folder: Path, kernels: int) -> None:
    """Ingest and attribute an Nsight export; the floor is a SELECT of the same columns."""
    from roundline.simulate.session import SimulateOptions, write_bulk

    written = write_bulk(SimulateOptions(), folder, kernels, "nsys-sqlite")
    export = folder / "capture.sqlite"
    select = (
        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]);"
        "q='SELECT start, end, deviceId, contextId, streamId, correlationId, globalPid,"
        " demangledName, graphNodeId, gridX, gridY, gridZ, blockX, blockY, blockZ,"
        " registersPerThread FROM CUPTI_ACTIVITY_KIND_KERNEL';"
        "cursor=c.execute(q)\nwhile cursor.fetchmany(65536): pass"
    )
    floor = measure(python(select, export))
    show(f"nsys {written:,} kernels: SELECT alone", floor, "")
    store = folder / "store.roundline"
    found = measure(roundline("ingest", export, "-o", store, "-q"))
    show("nsys: ingest", found, f"{written / found.cpu_s:,.0f} kernels/CPU s", floor)
    found = measure(roundline("attribute", store, "-q", "-o", folder / "a.txt"))
    show("nsys: attribute", found, f"{written / found.cpu_s:,.0f} kernels/CPU s", floor)


def bench_start() -> None:
    """How long a command line takes that does nothing; the floor is Python itself."""
    floor = measure(python("pass"))
    show("start: python alone", floor, "")
    show("start: roundline --help", measure(roundline("--help")), "", floor)
    model = ("--model", "qwen3.6-27b", "--gpu", "RTX A6000")
    show("start: roundline predict", measure(roundline("predict", *model)), "", floor)


def main() -> None:
    """Run all benchmarks in a temporary folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", choices=SCALES, default="full")
    torch_kernels, nsys_kernels = SCALES[parser.parse_args().scale]
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    bench_start()
    for bench, kernels in ((bench_torch, torch_kernels), (bench_nsys, nsys_kernels)):
        with tempfile.TemporaryDirectory() as folder:
            bench(Path(folder), kernels)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(the benchmark itself, which writes the captures, peaked at {peak:,.0f} MB)")


if __name__ == "__main__":
    main()
