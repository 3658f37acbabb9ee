"""What a torch trace says of itself: clock, processes, ranks and devices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from roundline.readers.contract import DeviceFacts, ProcessFacts
from roundline.readers.kineto_events import Event

_KEYS: Final = (
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "baseTimeNanoseconds",
    "roctracer_version",
    "hip_runtime_version",
)
_LABEL: Final = re.compile(r"\s*\[([^\]]+)\]\s*(.*)")
_LABEL_PART: Final = re.compile(r"([A-Z]+)[-_]?(\d+)", re.IGNORECASE)
_RANK: Final = re.compile(r"(?<![a-z])rank[-_ ]?(\d+)", re.IGNORECASE)
# `TP-1` is a rank, `tp2` may as well be the number of GPUs
_TENSOR_PARALLEL: Final = re.compile(r"(?<![A-Za-z])TP-(\d+)|pp\d+_tp(\d+)")
_WORKER: Final = re.compile(r"^worker(\d+)(?=_step|\.)", re.IGNORECASE)
_PIPELINE: Final = re.compile(r"(?<![a-z])pp[-_]?0*[1-9]", re.IGNORECASE)


@dataclass(frozen=True)
class Metadata:
    """The keys beside `traceEvents` that matter; `damaged` if their text is malformed."""

    schema_version: str | None
    base_ns: int | None
    rank: int | None
    world_size: int | None
    device_properties: tuple[dict[str, Any], ...]
    rocm: bool
    damaged: bool


class Processes(dict[Any, int]):
    """Local ids of processes by the `pid` of their events.

    A trace is of one process, whose GPU events carry a device ordinal as `pid`; only merged
    files label every event (`[TP00-DP00] 83`), and there every label is a process.
    """

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[str | None, int] = {}
        self.pids: dict[int, int] = {}

    def __missing__(self, pid: Any) -> int:
        match = _LABEL.match(pid) if isinstance(pid, str) else None
        label = match[1] if match else None
        process = self.labels.setdefault(label, len(self.labels))
        self[pid] = process
        return process

    def note_host(self, events: Iterable[Event]) -> None:
        """Learn the operating-system ids from events of the host."""
        for pid in {event.pid for event in events}:
            number = _pid(pid)
            if number is not None:
                self.pids.setdefault(self[pid], number)


def _pid(pid: int | str | None) -> int | None:
    if isinstance(pid, str):
        match = _LABEL.match(pid)
        pid = match[2] if match else pid
        return int(pid) if pid.strip().isdigit() else None
    return pid


def parse_metadata(head: bytes, tail: bytes, *, expected: bool) -> Metadata:
    """Metadata from the text before and after the events."""
    keys, damaged = _keys(head, tail) if expected else ({}, False)
    info = keys.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    properties = keys.get("deviceProperties")
    properties = properties if isinstance(properties, list) else []
    version = keys.get("schemaVersion")
    return Metadata(
        schema_version=None if version is None else str(version),
        base_ns=_integer(keys.get("baseTimeNanoseconds")),
        rank=_natural(info.get("rank")),
        world_size=_natural(info.get("world_size")) or None,
        device_properties=tuple(p for p in properties if isinstance(p, dict)),
        rocm="roctracer_version" in keys or "hip_runtime_version" in keys,
        damaged=damaged,
    )


def _keys(head: bytes, tail: bytes) -> tuple[dict[str, Any], bool]:
    keys: dict[str, Any] = {}
    damaged = False
    rest = tail.strip().removeprefix(b",").strip()
    for text in (head, b"{" + rest if rest else b""):
        if not text:
            damaged = True
            continue
        try:
            keys |= msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged = True
            keys |= _salvaged(text)
    return keys, damaged


def _salvaged(text: bytes) -> dict[str, Any]:
    """The known keys of a malformed text, each decoded for itself."""
    plain = text.decode("utf-8", "replace")
    decoder = json.JSONDecoder(strict=False)
    found: dict[str, Any] = {}
    for key in _KEYS:
        for match in re.finditer(rf'"{key}"\s*:\s*', plain):
            try:
                found[key] = decoder.raw_decode(plain, match.end())[0]
            except (ValueError, RecursionError):
                continue
    return found


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _natural(value: Any) -> int | None:
    number = _integer(value)
    return number if number is not None and 0 <= number < 1 << 31 else None


def processes_of(path: Path, metadata: Metadata, processes: Processes) -> tuple[ProcessFacts, ...]:
    """One process per file, or one per label of a merged file."""
    labels = processes.labels or {None: 0}
    if len(labels) == 1:
        rank, evidence = _rank(path, metadata, next(iter(labels)))
        return (ProcessFacts(0, processes.pids.get(0), rank, evidence, metadata.world_size),)
    ranks = [_label_rank(label) for label in labels]
    return tuple(
        ProcessFacts(
            process,
            processes.pids.get(process),
            rank if ranks.count(rank) == 1 else None,
            "metadata" if rank is not None and ranks.count(rank) == 1 else "order",
            metadata.world_size,
        )
        for process, rank in zip(labels.values(), ranks, strict=True)
    )


def _rank(path: Path, metadata: Metadata, label: str | None) -> tuple[int | None, str]:
    if (rank := _label_rank(label)) is not None:
        return rank, "metadata"
    if metadata.rank is not None:
        return metadata.rank, "metadata"
    if (rank := rank_of_file_name(path.name)) is not None:
        return rank, "file_name"
    return None, "order"


def _label_rank(label: str | None) -> int | None:
    parts = {name.upper(): int(number) for name, number in _LABEL_PART.findall(label or "")}
    if parts.get("PP"):
        return None
    return parts.get("TP")


def rank_of_file_name(name: str) -> int | None:
    """Rank from `…-TP-1-DECODE…`, `…rank1…`, `…-rank-1.gz`, `dp0_pp0_tp1_…_rank1…`, `worker1…`.

    With pipeline stages the tensor-parallel number alone names no rank.
    """
    patterns = (_RANK, _WORKER) if _PIPELINE.search(name) else (_RANK, _TENSOR_PARALLEL, _WORKER)
    for pattern in patterns:
        if matches := list(pattern.finditer(name)):
            last = matches[-1]  # a prefix of the user's comes first
            return int(last[last.lastindex or 1])
    return None


def devices_of(
    metadata: Metadata, processes: Processes, seen: set[tuple[int, int]]
) -> tuple[DeviceFacts, ...]:
    """One entry per device that GPU events name."""
    merged = len(processes.labels) > 1
    return tuple(
        _device(metadata, process, device, merged=merged) for process, device in sorted(seen)
    )


def _device(metadata: Metadata, process: int, device: int, *, merged: bool) -> DeviceFacts:
    properties, evidence = _properties(metadata, device, merged=merged)
    name = str(properties.get("name") or "").strip() or None
    return DeviceFacts(
        process_id=process,
        device_id=device,
        name=name,
        memory_bytes=_integer(properties.get("totalGlobalMem")),
        sm_count=_sm_count(properties),
        compute_capability=None if metadata.rocm else _compute_capability(properties),
        device_evidence=evidence if name else "absent",
    )


def _properties(metadata: Metadata, device: int, *, merged: bool) -> tuple[dict[str, Any], str]:
    """Properties of a device; an AMD device number is no index into them."""
    entries: Sequence[dict[str, Any]] = metadata.device_properties
    if not metadata.rocm:
        for entry in entries:
            if _integer(entry.get("id")) == device:
                return entry, "assumed" if merged else "mapped"
    if entries and len({str(entry.get("name")) for entry in entries}) == 1:
        return entries[0], "assumed"
    return {}, "absent"


def _sm_count(properties: dict[str, Any]) -> int | None:
    """`numSms`; torch 2.13's Python writer puts it under a wrong key instead."""
    count = _natural(properties.get("numSms"))
    if count is None:
        count = _natural(properties.get("maxThreadsPerMultiprocessor"))
        count = count if count is not None and count < 1024 else None
    return count


def _compute_capability(properties: dict[str, Any]) -> str | None:
    major, minor = (_integer(properties.get(f"compute{part}")) for part in ("Major", "Minor"))
    return None if major is None or minor is None else f"{major}.{minor}"
