"""`roundline what-if`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from roundline.cli._capture import open_capture, sources_argument
from roundline.cli._model import model_options
from roundline.cli._output import emit
from roundline.cli._reconcile import claims_options, reconcile_capture
from roundline.cli.options import force_option, format_option, output_option
from roundline.errors import UnknownNameError

if TYPE_CHECKING:
    from roundline.bandwidth.hardware import Gpu
    from roundline.reconcile.changes import Changes

F = TypeVar("F", bound=Callable[..., Any])

_POSITIVE = click.IntRange(min=1)
_NATURAL = click.IntRange(min=0)

_CHANGES = (
    click.option("--to-gpu", help="Another GPU, as the driver prints it."),
    click.option("--to-hbm-gbps", help="Another peak bandwidth: 960, 3.35TB/s."),
    click.option("--to-tp", type=_POSITIVE, help="Another number of GPUs of one replica."),
    click.option("--to-link", type=click.Choice(["nvlink", "pcie", "host", "network"]),
                 help="Something else between the GPUs."),
    click.option("--to-collective", type=click.Choice(["nccl", "custom"]),
                 help="Another all-reduce kernel."),
    click.option("--to-allreduce-us", type=click.FloatRange(min=0),
                 help="What one all-reduce takes, whatever its size."),
    click.option("--to-draft-steps", type=_NATURAL, help="Another number of draft passes, K."),
    click.option("--to-draft-vocab", type=_POSITIVE,
                 help="A smaller lm_head of the drafts, in rows."),
    click.option("--to-weight-format", help="Weights in fp8, int4_g128, nvfp4, Q4_K_M ..."),
    click.option("--to-head-format", help="Format of lm_head where it differs."),
    click.option("--to-draft-format", help="Format of the drafts' weights where it differs."),
    click.option("--to-context", type=_NATURAL, help="Cached tokens of each request."),
    click.option("--to-batch", type=_POSITIVE, help="Running requests."),
    click.option("--to-idle-ms", type=click.FloatRange(min=0),
                 help="Idle time of a round, such as what stays without a late host."),
    click.option("--to-accept-len", type=float,
                 help="Accept length after the change. [default: as measured; with other draft "
                 "steps, that of a constant rate]"),
)  # fmt: skip


def _change_options(function: F) -> F:
    for option in reversed(_CHANGES):
        function = option(function)
    return function


@click.command()
@sources_argument
@_change_options
@claims_options
@model_options
@format_option()
@output_option
@force_option
def command(
    sources: tuple[Path, ...],
    store_path: Path | None,
    logs: tuple[Path, ...],
    accept_len: float | None,
    accept_rate: float | None,
    tolerance: float,
    format_: str,
    output: Path | None,
    force: bool,
    **options: Any,  # the --to options, and those of ModelOptions
) -> None:
    """Say what the measured round would take with something changed: bounds, not promises.

    Only what a --to option names changes. A term that the model prices is scaled by predicted
    after / predicted before, so it keeps its measured efficiency; at best it reaches its floor.
    Idle time, sampling and other work that no model predicts are held constant. The other
    options describe the round as it was measured, as in `roundline reconcile`.
    """
    from roundline.reconcile.demands import demands_of
    from roundline.reconcile.exchanges import read_exchanges
    from roundline.reconcile.what_if import what_if
    from roundline.report.what_if import render_what_if
    from roundline.warehouse.build import open_warehouse

    to = {name[3:]: value for name, value in options.items() if name.startswith("to_")}
    model = {name: value for name, value in options.items() if not name.startswith("to_")}
    accept_len_after = to.pop("accept_len")
    r = reconcile_capture(sources, store_path, logs, accept_len, accept_rate, tolerance, model)
    changes = changes_of(to, r.floor.gpu)
    store = open_capture(sources, store_path)
    with open_warehouse(store, demands_of(r.floor)) as warehouse:
        exchanges = read_exchanges(warehouse, r.slowest.rank)
    length = r.acceptance.accept_len if r.acceptance else None
    result = what_if(
        r.slowest, r.floor, changes, exchanges, length, accept_len_after,
        r.verdict.missing_evidence,
    )  # fmt: skip
    emit(render_what_if(result, format_), output, force=force)


def changes_of(to: dict[str, Any], measured: Gpu) -> Changes:
    """The changes that the --to options name; `measured` is the GPU of the capture."""
    from roundline.reconcile.changes import Changes

    name, bandwidth, microseconds = to.pop("gpu"), to.pop("hbm_gbps"), to.pop("allreduce_us")
    return Changes(
        gpu=_gpu(name, bandwidth, measured),
        all_reduce_ns=None if microseconds is None else round(1000 * microseconds),
        **to,
    )


def _gpu(name: str | None, bandwidth: str | None, measured: Gpu) -> Gpu | None:
    from roundline.bandwidth.hardware import custom_gpu, find_gpu, parse_bandwidth

    if bandwidth is None:
        return find_gpu(name) if name else None
    gbps = parse_bandwidth(bandwidth)
    if name is None:
        return measured.with_bandwidth(gbps)
    try:
        return find_gpu(name).with_bandwidth(gbps)
    except UnknownNameError:
        return custom_gpu(name, gbps)
