"""`roundline simulate`: a capture with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from roundline.cli.options import force_option, quiet_option


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
@click.option("--case", help="A shipped capture instead of options: worked-example.")
@click.option("--engine", default="sglang-mtp", show_default=True, help="Which server runs.")
@click.option(
    "--format", "format_", type=click.Choice(["nsys-sqlite", "torch"]), default="nsys-sqlite",
    show_default=True, help="What the capture is written as.",
)  # fmt: skip
@click.option("--model", default="qwen3.6-27b", show_default=True, help="Shape of the model.")
@click.option("--gpu", default="rtx-a6000", show_default=True, help="GPU of every rank.")
@click.option("--tp", type=click.IntRange(1), default=2, show_default=True, help="Ranks.")
@click.option(
    "--draft-steps", type=click.IntRange(1), default=3, show_default=True, help="Draft passes."
)
@click.option("--batch", type=click.IntRange(1), default=1, show_default=True, help="Sequences.")
@click.option(
    "--context", type=click.IntRange(1), default=240, show_default=True, help="Tokens per sequence."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=6, show_default=True, help="Complete rounds."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of all jitter.")
@click.option(
    "--extend", type=click.Choice(["graph", "eager"]), default="graph", show_default=True,
    help="How SGLang launches the draft pass after acceptance.",
)  # fmt: skip
@click.option("--ranges/--no-ranges", default=False, help="Emit the ranges of the engine.")
@click.option("--nsys-schema", default="3.17.1", show_default=True, help="Export schema version.")
@click.option(
    "--cuda-graph-trace", type=click.Choice(["node", "graph"]), default="node", show_default=True,
    help="Record every graph node, or each replay as one span.",
)  # fmt: skip
@click.option("--warm-up", type=click.IntRange(0), default=0, help="Slow rounds at the start.")
@click.option("--prefill-after", type=int, multiple=True, help="A prompt follows this round.")
@force_option
@quiet_option
def command(
    output: Path,
    case: str | None,
    engine: str,
    format_: Literal["nsys-sqlite", "torch"],
    model: str,
    gpu: str,
    tp: int,
    draft_steps: int,
    batch: int,
    context: int,
    rounds: int,
    seed: int,
    extend: Literal["graph", "eager"],
    ranges: bool,
    nsys_schema: str,
    cuda_graph_trace: Literal["node", "graph"],
    warm_up: int,
    prefill_after: tuple[int, ...],
    force: bool,
    quiet: bool,
) -> None:
    """Write a synthetic capture and its truth into a folder.

    The folder gets capture files in the format of a real profiler, `truth.json` with what every
    round spent on what, and `truth.parquet` with one row per GPU activity. The same options give
    the same bytes.
    """
    from roundline.errors import UsageError
    from roundline.simulate.cases import write_case
    from roundline.simulate.session import SimulateOptions, simulate, write_capture

    if output.exists() and any(output.iterdir()) and not force:
        raise UsageError(f"{output} is not empty: choose another folder or pass --force")
    options = SimulateOptions(
        engine=engine, model=model, gpu=gpu, tp=tp, draft_steps=draft_steps, batch=batch,
        context=context, rounds=rounds, seed=seed, extend=extend, ranges=ranges, warm_up=warm_up,
        prefill_after=prefill_after, cpu_ops=ranges and format_ == "torch",
    )  # fmt: skip
    if case is not None:
        truth = write_case(case, output)
    else:
        truth = write_capture(
            options, simulate(options), output, format_,
            schema=nsys_schema, graphs=cuda_graph_trace,
        )  # fmt: skip
    if not quiet:
        ranks = len({item.rank for item in truth.rounds})
        found = len({item.round_id for item in truth.rounds})
        click.echo(f"{found} rounds on {ranks} ranks written to {output}", err=True)
