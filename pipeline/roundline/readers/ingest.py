"""From capture files to a store: sniff, read, assemble, publish."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from roundline import __version__
from roundline.errors import NoGpuActivityError, SourceError, StoreError
from roundline.readers.contract import (
    CAPABILITIES,
    Diagnostic,
    Progress,
    Reader,
    ReadOptions,
    SourceFacts,
)
from roundline.readers.sniff import SourceKind, find_sources
from roundline.readers.sources import Source, fingerprint, has_changed, refuse_changed
from roundline.store import Store, is_store, open_store
from roundline.store.manifest import MANIFEST, Manifest, ManifestDiagnostic, ManifestSource
from roundline.store.parts import PartSink
from roundline.store.publish import new_store
from roundline.store.ranks import Rank, assign_ranks
from roundline.store.schemas import SCHEMA_VERSION
from roundline.store.windows import rank_windows, skew_diagnostics
from roundline.store.writer import Part, assemble, write_diagnostics

# what reads each kind of source, imported when needed
READERS: Final = {
    SourceKind.NSYS_SQLITE: ("nsys_sqlite", "read_nsys_sqlite"),
    SourceKind.NSYS_PARQUETDIR: ("nsys_columnar", "read_nsys_columnar"),
    SourceKind.NSYS_ARROWDIR: ("nsys_columnar", "read_nsys_columnar"),
    SourceKind.NSYS_REPORT: ("nsys_report", "read_nsys_report"),
    SourceKind.KINETO: ("kineto", "read_kineto"),
    SourceKind.SERVER_LOG: ("server_log", "read_server_log"),
}
STORE_SUFFIX: Final = ".roundline"


@dataclass(frozen=True)
class IngestOptions:
    """How to read, with how many processes, and whom to tell of progress."""

    read: ReadOptions = field(default_factory=ReadOptions)
    jobs: int = 1
    force: bool = False
    progress: Progress | None = None
    notice: Callable[[str], None] | None = None


@dataclass(frozen=True)
class IngestResult:
    """What an ingest made; the JSON document of `roundline ingest`."""

    store: str
    sources: tuple[ManifestSource, ...]
    tables: dict[str, int]
    kernels: int
    kernel_ns: int
    ranks: tuple[int, ...]
    truncated: bool
    capabilities: dict[str, str]
    diagnostics: tuple[ManifestDiagnostic, ...]


def ingest(sources: Sequence[Path], target: Path, options: IngestOptions) -> IngestResult:
    """Read capture files into a new store.

    Raises:
        SourceError: a source is unusable, or nothing ran on a GPU.
        StoreError: `target` exists and `options.force` is off.
    """
    found = find_sources(sources)
    for path, reason in found.skipped:
        _tell(options, f"skipped {path}: {reason}")
    with new_store(target, force=options.force) as folder:
        staging = folder / "staging"
        spill = staging / "spill"
        spill.mkdir(parents=True)
        prints = [fingerprint(path, kind) for path, kind in found.sources]
        parts = _read_all(prints, staging, options)
        refuse_changed(prints)
        manifest = _assemble(folder, prints, parts, options, spill)
        shutil.rmtree(staging)
        (folder / MANIFEST).write_text(manifest.dumps(), encoding="utf-8")
    return _result(target, manifest)


def open_or_ingest(paths: Sequence[Path], target: Path | None, options: IngestOptions) -> Store:
    """The store that `paths` mean: a store itself, or files that are ingested first.

    An earlier store of the same files is used again as long as none of them has changed.

    Raises:
        StoreError: several stores, or a store together with other files.
    """
    if len(paths) == 1 and is_store(paths[0]):
        return _opened(paths[0], options)
    stores = [path for path in paths if is_store(path)]
    if stores:
        raise StoreError(
            f"{stores[0]} is a store: files cannot be added to it, ingest all of them together"
        )
    found = find_sources(paths)
    target = target or _beside(found.sources[0][0], paths)
    if is_store(target) and _holds(target, found.sources):
        return open_store(target)
    _tell(options, f"ingesting into {target}")
    ingest(paths, target, replace(options, force=True))
    return open_store(target)


def _opened(path: Path, options: IngestOptions) -> Store:
    store = open_store(path)
    for source in store.manifest.sources:
        original = path.parent / source.name
        if original.exists() and has_changed(original, source, path / MANIFEST):
            _tell(options, f"{path} is stale: {original} has changed since; ingest it again")
    return store


def _beside(first: Path, paths: Sequence[Path]) -> Path:
    """`NAME.roundline` beside the given directory, or beside the first file."""
    base = paths[0] if len(paths) == 1 and paths[0].is_dir() else first
    name = base.name
    for suffix in (".gz", ".json", ".trace", ".pt", ".sqlite", ".nsys-rep", ".qdrep"):
        name = name.removesuffix(suffix)
    return base.parent / f"{name or 'capture'}{STORE_SUFFIX}"


def _holds(target: Path, sources: Sequence[tuple[Path, SourceKind]]) -> bool:
    """Whether the store was made of exactly these files, as they are now, by this version."""
    try:
        manifest = open_store(target).manifest
    except StoreError:
        return False
    if manifest.tool_version != __version__ or manifest.truncated:
        return False
    if [source.name for source in manifest.sources] != [path.name for path, _ in sources]:
        return False
    hashes = [fingerprint(path, kind).sha256 for path, kind in sources]
    return hashes == [source.sha256 for source in manifest.sources]


def _read_all(sources: Sequence[Source], staging: Path, options: IngestOptions) -> tuple[Part, ...]:
    folders = [staging / f"source-{index}" for index in range(len(sources))]
    if options.jobs == 1 or len(sources) == 1:
        progress = options.progress
        facts = [
            _read(source, folder, options.read, progress)
            for source, folder in zip(sources, folders, strict=True)
        ]
    else:
        with _workers(min(options.jobs, len(sources))) as pool:
            jobs = [
                pool.submit(_read, source, folder, options.read, None)
                for source, folder in zip(sources, folders, strict=True)
            ]
            facts = [job.result() for job in jobs]
    return tuple(Part(folder, fact) for folder, fact in zip(folders, facts, strict=True))


@contextmanager
def _workers(number: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(number, mp_context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _read(
    source: Source, folder: Path, options: ReadOptions, progress: Progress | None
) -> SourceFacts:
    module, name = READERS[source.kind]
    reader: Reader = getattr(import_module(f"roundline.readers.{module}"), name)
    with PartSink(folder) as sink:
        return reader(source.path, sink, options, progress)


def _assemble(
    folder: Path,
    sources: Sequence[Source],
    parts: Sequence[Part],
    options: IngestOptions,
    spill: Path,
) -> Manifest:
    parts = [
        Part(part.folder, _named(s, part.facts)) for s, part in zip(sources, parts, strict=True)
    ]
    facts = [part.facts for part in parts]
    ranks, doubts = assign_ranks(facts)
    diagnostics: list[tuple[Diagnostic, int | None]] = [
        (d, i) for i, fact in enumerate(facts) for d in fact.diagnostics
    ]
    diagnostics += [(doubt, None) for doubt in (*doubts, *_clock_doubts(facts))]
    rows = assemble(folder, parts, ranks, spill)
    _refuse_no_gpu(sources, rows)
    windows = rank_windows(folder / "kernels.parquet")
    if _is_one_clock(facts):
        diagnostics += [(skew, None) for skew in skew_diagnostics(windows)]
    rows["diagnostics"] = write_diagnostics(folder, diagnostics)
    return Manifest(
        schema_version=SCHEMA_VERSION,
        tool_version=__version__,
        sources=tuple(map(_manifest_source, sources, facts)),
        ranks=tuple(rank.rank for rank in ranks),
        tables=dict(sorted(rows.items())),
        kernel_ns=sum(window.sum_ns for window in windows),
        capabilities=_capabilities(facts, ranks),
        diagnostics=tuple(_manifest_diagnostic(d, i) for d, i in diagnostics),
        truncated=any(fact.truncated for fact in facts),
        options={k: v for k, v in asdict(options.read).items() if isinstance(v, bool)},
    )


def _named(source: Source, facts: SourceFacts) -> SourceFacts:
    """Facts with the rank of the file's name, where one process drives one GPU unnamed."""
    from roundline.readers.kineto_metadata import rank_of_file_name

    drivers = {device.process_id for device in facts.devices}
    rank = rank_of_file_name(source.path.name)
    if rank is None or len(facts.devices) != 1:
        return facts
    processes = tuple(
        replace(process, rank=rank, rank_evidence="file_name")
        if process.process_id in drivers and process.rank is None
        else process
        for process in facts.processes
    )
    return replace(facts, processes=processes)


def _is_one_clock(facts: Sequence[SourceFacts]) -> bool:
    """Whether times of all captures can be compared."""
    bases = [fact.wall_clock_base_ns for fact in facts if fact.processes]
    return len(bases) == 1 or None not in bases


def _clock_doubts(facts: Sequence[SourceFacts]) -> Iterator[Diagnostic]:
    timed = [fact for fact in facts if fact.processes]
    unknown = sum(fact.wall_clock_base_ns is None for fact in timed)
    if unknown and len(timed) > 1:
        yield Diagnostic(
            "clock_unknown", "warning", unknown,
            "not every source states its wall clock: times of different sources are not comparable",
        )  # fmt: skip


def _refuse_no_gpu(sources: Sequence[Source], rows: dict[str, int]) -> None:
    if rows["kernels"] + rows["memory_ops"] + rows["graph_spans"]:
        return
    captures = [source.path.name for source in sources if source.kind != SourceKind.SERVER_LOG]
    if captures:
        raise NoGpuActivityError(
            f"no GPU events in {', '.join(captures)}: nothing ran on a GPU while this was captured,"
            " or the profiler did not trace CUDA"
        )
    if not rows["log_windows"]:
        raise SourceError("the log has no line that a supported engine prints")


def _capabilities(facts: Sequence[SourceFacts], ranks: Sequence[Rank]) -> dict[str, str]:
    """Present if every capture has it, absent if none has, else partial. Logs only add theirs."""
    captures = [fact for fact in facts if fact.processes]
    states: dict[str, str] = {}
    for name in CAPABILITIES:
        relevant = facts if name == "log_windows" else captures
        found = {fact.capabilities.get(name, "absent") for fact in relevant}
        if name == "log_windows" and "present" in found:
            found = {"present"}
        states[name] = found.pop() if len(found) == 1 else ("partial" if found else "absent")
    if ranks and all(rank.device.name is None for rank in ranks):
        states["gpu_identity"] = "absent"
    return states


def _manifest_source(source: Source, facts: SourceFacts) -> ManifestSource:
    return ManifestSource(
        name=source.path.name,
        kind=source.kind.value,
        bytes=source.bytes,
        sha256=source.sha256,
        producer=facts.producer,
        producer_version=facts.producer_version,
        schema_version=facts.schema_version,
        truncated=facts.truncated,
    )


def _manifest_diagnostic(diagnostic: Diagnostic, source: int | None) -> ManifestDiagnostic:
    d = diagnostic
    return ManifestDiagnostic(d.code, d.severity, d.count, d.detail, source)


def _result(target: Path, manifest: Manifest) -> IngestResult:
    return IngestResult(
        store=str(target),
        sources=manifest.sources,
        tables=manifest.tables,
        kernels=manifest.tables["kernels"],
        kernel_ns=manifest.kernel_ns,
        ranks=manifest.ranks,
        truncated=manifest.truncated,
        capabilities=manifest.capabilities,
        diagnostics=manifest.diagnostics,
    )


def _tell(options: IngestOptions, message: str) -> None:
    if options.notice is not None:
        options.notice(message)
