"""Arrow schemas of the raw tables: the contract between readers and SQL.

Every time is an int64 nanosecond on the capture's one clock. NULL is "not captured",
0 is "measured zero". A field's `meaning` metadata feeds the data dictionary.

`process_id` is dense over the capture: it stands for one process of one source file.
Correlation ids, thread ids and stream ids are only unique within a process, so every
join between GPU activity and API calls is on (process_id, correlation_id).
`rank` is one process driving one GPU; tables of the host carry the rank of their process
when it drives exactly one GPU and NULL otherwise.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

SCHEMA_VERSION: Final = 1


def _field(name: str, type_: pa.DataType, meaning: str, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"meaning": meaning})


def _required(name: str, type_: pa.DataType, meaning: str) -> pa.Field:
    return _field(name, type_, meaning, nullable=False)


_GPU_ACTIVITY = [
    _required("rank", pa.int32(), "process driving one GPU"),
    _required("process_id", pa.int32(), "process of the capture that launched it"),
    _required("start_ns", pa.int64(), "start of execution"),
    _required("end_ns", pa.int64(), "end of execution, exclusive"),
    _field("device_id", pa.int32(), "device ordinal as that process sees it"),
    _field("context_id", pa.int64(), "CUDA context, unique within the process"),
    _field("stream_id", pa.int64(), "stream, unique within the process"),
    _field("correlation_id", pa.int64(), "launching API call within the process; NULL if unknown"),
    _field("graph_id", pa.int64(), "CUDA graph that the node belongs to; NULL outside graphs"),
    _field("graph_node_id", pa.int64(), "graph node, stable over replays; NULL outside graphs"),
]

KERNELS: Final = pa.schema(
    [
        _required("kernel_id", pa.int64(), "dense over the store, in (rank, start_ns) order"),
        *_GPU_ACTIVITY,
        _required("name_id", pa.int32(), "name of the kernel in `names`"),
        _field("grid_x", pa.int32(), "thread blocks in x"),
        _field("grid_y", pa.int32(), "thread blocks in y"),
        _field("grid_z", pa.int32(), "thread blocks in z"),
        _field("block_x", pa.int32(), "threads per block in x"),
        _field("block_y", pa.int32(), "threads per block in y"),
        _field("block_z", pa.int32(), "threads per block in z"),
        _field("registers_per_thread", pa.int32(), "registers per thread"),
        _field("shared_memory_bytes", pa.int64(), "static + dynamic shared memory per block"),
        _field("external_id", pa.int64(), "torch `External id` of the enclosing record function"),
    ]
)

MEMORY_OPS: Final = pa.schema(
    [
        _required("memory_op_id", pa.int64(), "dense over the store, in (rank, start_ns) order"),
        *_GPU_ACTIVITY,
        _required("kind", pa.string(), "`memcpy` or `memset`"),
        _field("copy_kind", pa.string(), "HtoD, DtoH, DtoD, PtoP, HtoH or other; NULL for memset"),
        _field("bytes", pa.int64(), "bytes moved or set"),
    ]
)

GRAPH_SPANS: Final = pa.schema(
    [
        _required("graph_span_id", pa.int64(), "dense over the store, in (rank, start_ns) order"),
        *[f for f in _GPU_ACTIVITY if f.name != "graph_node_id"],
        _field("graph_exec_id", pa.int64(), "executable graph"),
    ]
)

_HOST_ACTIVITY = [
    _field("rank", pa.int32(), "rank of the process if it drives exactly one GPU"),
    _required("process_id", pa.int32(), "process of the capture"),
    _field("thread_id", pa.int64(), "thread, unique within the process"),
    _required("start_ns", pa.int64(), "start on the host"),
]

API_CALLS: Final = pa.schema(
    [
        _required(
            "api_call_id", pa.int64(), "dense over the store, in (process_id, start_ns) order"
        ),
        *_HOST_ACTIVITY,
        _required("end_ns", pa.int64(), "return of the call"),
        _required("name", pa.string(), "CUDA or HIP API name without version suffix"),
        _field("correlation_id", pa.int64(), "id that the launched activity carries too"),
    ]
)

RANGES: Final = pa.schema(
    [
        _required("range_id", pa.int64(), "dense over the store, in (process_id, start_ns) order"),
        *_HOST_ACTIVITY,
        _field("end_ns", pa.int64(), "end of the range; NULL when it was never closed"),
        _required("name_id", pa.int32(), "message of the range in `names`"),
        _required(
            "kind",
            pa.string(),
            "`nvtx_push_pop`, `nvtx_start_end`, `user_annotation`, `cpu_op`, `python_function`, "
            "or `gpu_annotation` (on a stream of a device, not on a thread)",
        ),
        _field("domain", pa.string(), "NVTX domain; NULL for the default domain and for torch"),
        _field("stream_id", pa.int64(), "stream of a `gpu_annotation`"),
        _field("external_id", pa.int64(), "torch `External id`"),
    ]
)

NAMES: Final = pa.schema(
    [
        _required("name_id", pa.int32(), "dense over the store, in order of (name, short_name)"),
        _required("name", pa.string(), "full name as captured (demangled where the source has it)"),
        _field("short_name", pa.string(), "Nsight short name; NULL in torch traces"),
    ]
)

DEVICES: Final = pa.schema(
    [
        _required("rank", pa.int32(), "process driving one GPU"),
        _required("process_id", pa.int32(), "process of the capture"),
        _required("device_id", pa.int32(), "device ordinal as that process sees it"),
        _field("name", pa.string(), "device name as the driver prints it"),
        _field(
            "memory_bandwidth_bytes_per_s", pa.int64(), "peak bandwidth that the capture states"
        ),
        _field("memory_bytes", pa.int64(), "device memory"),
        _field("l2_bytes", pa.int64(), "L2 cache"),
        _field("sm_count", pa.int32(), "streaming multiprocessors"),
        _field("compute_capability", pa.string(), "e.g. `8.6`"),
        _required(
            "rank_evidence", pa.string(), "how the rank was found: metadata, file_name or order"
        ),
        _required(
            "device_evidence", pa.string(), "how the name was found: mapped, assumed or absent"
        ),
    ]
)

PROCESSES: Final = pa.schema(
    [
        _required("process_id", pa.int32(), "dense over the capture"),
        _required("source_id", pa.int32(), "index of the source file in the manifest"),
        _field("pid", pa.int64(), "operating-system process id inside the source"),
        _field("world_size", pa.int32(), "ranks of the job, if the source states it"),
        _field("wall_clock_base_ns", pa.int64(), "Unix time of the clock's zero; NULL if unknown"),
    ]
)

OVERHEADS: Final = pa.schema(
    [
        *_HOST_ACTIVITY,
        _required("end_ns", pa.int64(), "end of the profiler's own work"),
        _required("kind", pa.string(), "what the profiler did, e.g. `Buffer Flush`"),
    ]
)

DIAGNOSTICS: Final = pa.schema(
    [
        _required("code", pa.string(), "stable code of the finding"),
        _required("severity", pa.string(), "`info`, `warning` or `error`"),
        _required("count", pa.int64(), "occurrences"),
        _required("detail", pa.string(), "what was seen, where, what it means"),
        _field("source_id", pa.int32(), "index of the source file in the manifest"),
    ]
)

LOG_WINDOWS: Final = pa.schema(
    [
        _required("source_id", pa.int32(), "index of the log file in the manifest"),
        _required("line", pa.int64(), "1-based line in the log"),
        _required("engine", pa.string(), "`sglang`, `vllm`, `trtllm` or `llama.cpp`"),
        _required(
            "kind", pa.string(), "decode, prefill, throughput, spec, iter, prompt, eval, graphs"
        ),
        _field("wall_clock_ns", pa.int64(), "Unix time printed on the line"),
        _field("dp_rank", pa.int32(), "data-parallel rank printed on the line"),
        _field("running_requests", pa.int32(), "requests running"),
        _field("queued_requests", pa.int32(), "requests waiting"),
        _field("gen_tokens_per_s", pa.float64(), "generation throughput as printed"),
        _field("accept_len", pa.float64(), "accept length as printed"),
        _field("accept_rate", pa.float64(), "accept rate as printed"),
        _field("rounds", pa.int64(), "rounds of the window, if the line implies them"),
        _field("round_ms", pa.float64(), "round time that the line implies; NULL when unusable"),
        _field(
            "unusable_because", pa.string(), "`idle`, `prefill`, `batch_changed`, …; NULL if usable"
        ),
        _field("fields", pa.string(), "all parsed fields as a JSON object"),
    ]
)

TABLES: Final[dict[str, pa.Schema]] = {
    "kernels": KERNELS,
    "memory_ops": MEMORY_OPS,
    "graph_spans": GRAPH_SPANS,
    "api_calls": API_CALLS,
    "ranges": RANGES,
    "names": NAMES,
    "devices": DEVICES,
    "processes": PROCESSES,
    "overheads": OVERHEADS,
    "diagnostics": DIAGNOSTICS,
    "log_windows": LOG_WINDOWS,
}

SORT_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "kernels": ("rank", "start_ns", "end_ns", "stream_id", "name_id", "correlation_id"),
    "memory_ops": ("rank", "start_ns", "end_ns", "stream_id", "kind", "correlation_id"),
    "graph_spans": ("rank", "start_ns", "end_ns", "stream_id", "correlation_id"),
    "api_calls": ("process_id", "start_ns", "end_ns", "thread_id", "name", "correlation_id"),
    "ranges": ("process_id", "start_ns", "end_ns", "thread_id", "kind", "name_id"),
    "names": ("name", "short_name"),
    "devices": ("rank",),
    "processes": ("process_id",),
    "overheads": ("process_id", "start_ns", "end_ns", "kind"),
    "diagnostics": ("source_id", "code", "detail"),
    "log_windows": ("source_id", "line"),
}
