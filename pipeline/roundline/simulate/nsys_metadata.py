"""Rows that describe a capture and its machine, as Nsight Systems exports them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from roundline.simulate.nsys_schema import PRODUCT_VERSIONS
from roundline.simulate.timeline import Capture, RankTrace

Row = Mapping[str, object]

VM: Final = 0x0001_0000_0000_0000  # hardware id and VM id, the top 16 bits of every global id
CONTEXT: Final = 1


def global_pid(trace: RankTrace) -> int:
    """`hardware:8 | VM:8 | pid:24 | tid:24` with tid 0."""
    return VM | trace.pid << 24


def pairs(facts: Iterable[tuple[str, str]]) -> list[Row]:
    """Rows of a name-value table."""
    return [{"name": name, "value": value} for name, value in facts]


def export_facts(schema: str) -> list[tuple[str, str]]:
    """What the exporter says of itself and of its options."""
    major, minor, micro = schema.split(".")
    return [
        ("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"),
        ("EXPORT_PRODUCT_VERSION", PRODUCT_VERSIONS[schema]),
        ("EXPORT_SCHEMA_VERSION", schema),
        ("EXPORT_SCHEMA_VERSION_MAJOR", major),
        ("EXPORT_SCHEMA_VERSION_MINOR", minor),
        ("EXPORT_SCHEMA_VERSION_MICRO", micro),
        ("EXPORT_PARAM_EXPORT_TYPE", "SQLite"),
        ("EXPORT_PARAM_LAZY", "true"),
        ("EXPORT_PARAM_TIME_NORMALIZE", "false"),
        ("EXPORT_PARAM_TIME_SHIFT", "0"),
        ("EXPORT_PARAM_TABLES_TO_EXPORT", ""),
        ("EXPORT_PARAM_TIMES_TO_EXPORT", ""),
        ("EXPORT_CONFIG_TIME_SHIFT", "0"),
        ("SYNTHETIC", "written by roundline simulate"),
    ]


def process(trace: RankTrace) -> Row:
    """A row of PROCESSES."""
    return {"globalPid": global_pid(trace), "pid": trace.pid, "name": f"scheduler_TP{trace.rank}"}


def gpu(capture: Capture, trace: RankTrace) -> Row:
    """A row of TARGET_INFO_GPU; bandwidth is the theoretical peak."""
    model, (major, minor) = capture.gpu, capture.gpu.compute_capability
    return {
        "vmId": VM,
        "id": trace.rank,
        "name": model.name,
        "busLocation": f"0000:{0x41 + 0x40 * trace.rank:02x}:00.0",
        "isDiscrete": 1,
        "l2CacheSize": model.l2_bytes,
        "totalMemory": model.memory_bytes,
        "memoryBandwidth": model.memory_bandwidth_bytes_per_s,
        "smCount": model.sm_count,
        "chipName": model.chip,
        "cuDevice": trace.rank,
        "threadsPerWarp": 32,
        "computeMajor": major,
        "computeMinor": minor,
        "smMajor": major,
        "smMinor": minor,
    }


def device(capture: Capture, trace: RankTrace) -> Row:
    """A row of TARGET_INFO_CUDA_DEVICE: what the process calls its GPU."""
    return {
        "gpuId": trace.rank,
        "cudaId": trace.device_id,
        "pid": trace.pid,
        "numMultiprocessors": capture.gpu.sm_count,
    }


def context(trace: RankTrace) -> Row:
    """A row of TARGET_INFO_CUDA_CONTEXT_INFO or, before it, _NULL_STREAM."""
    return {
        "nullStreamId": 7,
        "streamId": 7,
        "hwId": 0,
        "vmId": 1,
        "processId": trace.pid,
        "deviceId": trace.device_id,
        "contextId": CONTEXT,
        "parentContextId": 0,
        "isGreenContext": 0,
    }
