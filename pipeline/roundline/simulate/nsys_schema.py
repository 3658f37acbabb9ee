"""Tables of Nsight Systems exports over the schema versions, as far as captures of decode need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from roundline.errors import UnknownNameError

Version = tuple[int, ...]

PRODUCT_VERSIONS: Final[dict[str, str]] = {
    "2.9.1": "2022.2.1.31",
    "3.0.0": "2022.4.2.18",
    "3.1.2": "2023.1.2.43",
    "3.1.7": "2023.2.3.1004",
    "3.7.2": "2023.4.4.54",
    "3.11.1": "2024.2.3.38",
    "3.13.2": "2024.5.1.113",
    "3.16.1": "2024.6.2.225",
    "3.17.1": "2025.1.1.110",
    "3.24.0": "2025.5.2.266",
    "3.24.14": "2026.1.1.204",
    "3.25.0": "2026.2.1.210",
}


@dataclass(frozen=True)
class Column:
    """A column and the versions in `[since, until)` that have it."""

    name: str
    type: str
    since: Version = (0,)
    until: Version = (99,)


@dataclass(frozen=True)
class Table:
    """A table and the versions that have it."""

    name: str
    columns: tuple[Column, ...]
    since: Version = (0,)
    until: Version = (99,)

    def names(self, version: Version) -> list[str]:
        """Columns of one version in order."""
        return [c.name for c in self.columns if c.since <= version < c.until]

    def ddl(self, version: Version) -> str:
        """CREATE TABLE as the exporter of that version writes it."""
        columns = (c for c in self.columns if c.since <= version < c.until)
        lines = ", ".join(f'"{c.name}" {c.type}' for c in columns)
        return f"CREATE TABLE {self.name} ({lines})"


def parse_version(text: str) -> Version:
    """A schema version.

    Raises:
        UnknownNameError: the writer does not know this version.
    """
    if text not in PRODUCT_VERSIONS:
        known = ", ".join(PRODUCT_VERSIONS)
        raise UnknownNameError("schema version", text, PRODUCT_VERSIONS, f"known are {known}")
    return tuple(int(part) for part in text.split("."))


def _columns(text: str) -> tuple[Column, ...]:
    """Columns from `name!` (NOT NULL), `name:TEXT`, `name@3.7.2` (since), `name~3.24.0` (until)."""
    return tuple(_column(word) for word in text.split())


def _column(word: str) -> Column:
    word, _, until = word.partition("~")
    word, _, since = word.partition("@")
    required = " NOT NULL" if word.endswith("!") else ""
    name, _, kind = word.rstrip("!").partition(":")
    return Column(
        name,
        (kind or "INTEGER") + required,
        _version(since) if since else (0,),
        _version(until) if until else (99,),
    )


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split("."))


_GPU: Final = (
    "start! end! deviceId! contextId! greenContextId@3.7.2 streamId! correlationId globalPid "
)
_TABLES: Final = (
    Table(
        "StringIds",
        (Column("id", "INTEGER NOT NULL PRIMARY KEY"), Column("value", "TEXT NOT NULL")),
    ),
    Table("EXPORT_META_DATA", _columns("name:TEXT! value:TEXT"), until=(3, 4)),
    Table("META_DATA_EXPORT", _columns("name:TEXT! value:TEXT"), since=(3, 4)),
    Table("META_DATA_CAPTURE", _columns("name:TEXT! value:TEXT"), since=(3, 4)),
    Table("ANALYSIS_DETAILS", _columns("globalVid! duration! startTime! stopTime!")),
    Table(
        "TARGET_INFO_SESSION_START_TIME",
        _columns("utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs@3.24.14"),
    ),
    Table("PROCESSES", _columns("globalPid pid name:TEXT")),
    Table(
        "TARGET_INFO_GPU",
        _columns(
            "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory "
            "memoryBandwidth clockRate smCount pwGpuId uuid:TEXT luid chipName:TEXT cuDevice "
            "ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask constantMemory maxIPC "
            "maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm "
            "maxRegistersPerSm threadsPerWarp asyncEngines maxWarpsPerSm maxBlocksPerSm "
            "maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX maxGridDimY "
            "maxGridDimZ computeMajor computeMinor smMajor smMinor"
        ),
    ),
    Table(
        "TARGET_INFO_CUDA_DEVICE",
        _columns("gpuId cudaId! pid! uuid:TEXT@3.24.14 numMultiprocessors@3.24.14"),
        since=(3, 17, 1),
    ),
    Table(
        "TARGET_INFO_CUDA_NULL_STREAM",
        _columns("streamId! hwId! vmId! processId! deviceId! contextId!"),
        until=(3, 7, 2),
    ),
    Table(
        "TARGET_INFO_CUDA_CONTEXT_INFO",
        _columns(
            "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId "
            "isGreenContext numMultiprocessors@3.24.14"
        ),
        since=(3, 7, 2),
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        _columns(
            _GPU + "demangledName! shortName! mangledName launchType cacheConfig "
            "registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ! "
            "staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! "
            "gridId! sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig "
            "qmdBulkReleaseDone@3.24.0 qmdPreexitDone@3.24.0 qmdLastCtaDone@3.24.0 "
            "graphId@3.24.0 clusterX@3.24.0 clusterY@3.24.0 clusterZ@3.24.0 "
            "clusterSchedulingPolicy@3.24.0 maxPotentialClusterSize@3.24.0 "
            "maxActiveClusters@3.24.0 sharedMemoryRequestedPercentage@3.24.14 "
            "tensorSizeMinusOneElements:TEXT!@3.25.0"
        ),
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_MEMCPY",
        _columns(
            _GPU + "bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId "
            "dstDeviceId dstContextId migrationCause graphNodeId virtualAddress "
            "name:TEXT~3.0.0 copyCount@3.24.0"
        ),
    ),
    Table("CUPTI_ACTIVITY_KIND_MEMSET", _columns(_GPU + "value! bytes! graphNodeId memKind")),
    Table(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        _columns(
            "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid "
            "graphId! graphExecId!"
        ),
        since=(3, 11, 1),
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_RUNTIME",
        _columns(
            "start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId "
            "name:TEXT~3.0.0"
        ),
    ),
    Table(
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        _columns(_GPU + "deprecatedSyncType@3.17.1 syncType! eventId! eventSyncId@3.17.1"),
    ),
    Table(
        "PROFILER_OVERHEAD",
        _columns("start! end! globalTid nameId! returnValue!~3.24.0 overheadType!@3.24.0"),
    ),
    Table(
        "NVTX_EVENTS",
        _columns(
            "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId "
            "domainId uint64Value int64Value doubleValue:REAL uint32Value int32Value "
            "floatValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT@3.16.1"
        ),
    ),
    Table(
        "DIAGNOSTIC_EVENT",
        _columns("timestamp! timestampType! source! severity! text:TEXT! globalPid"),
        since=(3, 11, 1),
    ),
)


def tables_of(version: Version) -> dict[str, Table]:
    """The tables of one version by name."""
    return {table.name: table for table in _TABLES if table.since <= version < table.until}
