"""Writes the truth beside a capture.

`truth.json` (schema `roundline.simulate/1`) is small: per round and rank the sums that
attribution must find. `truth.parquet` has one row per GPU activity. All times are nanoseconds on
the capture file's own clock.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from roundline.simulate.timeline import Capture, Kernel, MemoryOp
from roundline.simulate.truth import CaptureTruth, Located, Meeting, Round

SCHEMA: Final = "roundline.simulate/1"


def write_truth(
    truth: CaptureTruth, capture: Capture, folder: Path, parameters: dict[str, Any], shift_ns: int
) -> None:
    """Write `truth.json` and `truth.parquet` into `folder`.

    Args:
        truth: of `capture`.
        capture: what was written.
        folder: where the capture files are.
        parameters: the options that made the capture, for the reader of the file.
        shift_ns: what the format adds to the capture's clock.
    """
    document = truth_document(truth, capture, parameters, shift_ns)
    text = json.dumps(document, indent=1) + "\n"
    (folder / "truth.json").write_text(text, encoding="utf-8")
    _write_activities(truth, folder / "truth.parquet", shift_ns)


def truth_document(
    truth: CaptureTruth, capture: Capture, parameters: dict[str, Any], shift_ns: int
) -> dict[str, Any]:
    """The JSON document: parameters, then per round wall, work, idle and collectives."""
    return {
        "schema": SCHEMA,
        "synthetic": True,
        "parameters": parameters,
        "ranks": [trace.rank for trace in capture.ranks],
        "kernels": sum(isinstance(a, Kernel) for _, a in capture.activities()),
        "rounds": [_round(r, truth.collectives, shift_ns) for r in truth.rounds],
    }


def _round(item: Round, meetings: tuple[Meeting, ...], shift_ns: int) -> dict[str, Any]:
    met = [m for m in meetings if (m.rank, m.round_id) == (item.rank, item.round_id)]
    return {
        "rank": item.rank,
        "round_id": item.round_id,
        "start_ns": item.start_ns + shift_ns,
        "end_ns": item.end_ns + shift_ns,
        "wall_ns": item.wall_ns,
        "excluded_because": item.excluded_because,
        "attribution": [asdict(work) for work in item.work],
        "idle": [asdict(idle) for idle in item.idle],
        "host": asdict(item.host),
        "collectives": {
            "count": len(met),
            "transfer_ns": sum(m.transfer_ns or 0 for m in met),
            "wait_ns": sum(m.wait_ns or 0 for m in met),
        },
    }


def _write_activities(truth: CaptureTruth, path: Path, shift_ns: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    meetings = {(m.rank, m.collective_id): m for m in truth.collectives}
    rows = [_activity_row(item, meetings, shift_ns) for item in truth.activities]
    pq.write_table(pa.Table.from_pylist(rows, schema=_activity_schema()), path, compression="zstd")


def _activity_row(
    item: Located, meetings: dict[tuple[int, int], Meeting], shift_ns: int
) -> dict[str, object]:
    activity, truth = item.activity, item.activity.truth
    meeting = meetings.get((item.rank, -1 if truth.collective_id is None else truth.collective_id))
    in_round = item.round_id is not None
    return {
        "rank": item.rank,
        "kind": activity.kind if isinstance(activity, MemoryOp) else "kernel",
        "name": activity.name if isinstance(activity, Kernel) else None,
        "start_ns": activity.start_ns + shift_ns,
        "end_ns": activity.end_ns + shift_ns,
        "stream_id": activity.stream_id,
        "correlation_id": activity.correlation_id,
        "replay_id": activity.replay_id,
        "round_id": item.round_id,
        "phase": truth.phase if in_round else None,
        "draft_step": truth.draft_step if in_round else None,
        "category": truth.category,
        "layer": truth.layer,
        "matrix": truth.matrix,
        "exclusive_ns": item.exclusive_ns,
        "collective_id": truth.collective_id,
        "transfer_ns": meeting.transfer_ns if meeting else None,
        "wait_ns": meeting.wait_ns if meeting else None,
    }


def _activity_schema() -> Any:
    import pyarrow as pa

    texts = {"kind", "name", "phase", "category", "matrix"}
    small = {"rank", "draft_step", "layer"}
    columns = (
        "rank", "kind", "name", "start_ns", "end_ns", "stream_id", "correlation_id", "replay_id",
        "round_id", "phase", "draft_step", "category", "layer", "matrix", "exclusive_ns",
        "collective_id", "transfer_ns", "wait_ns",
    )  # fmt: skip
    return pa.schema(
        [
            (name, pa.string() if name in texts else pa.int32() if name in small else pa.int64())
            for name in columns
        ]
    )
