"""`roundline simulate`: a capture with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from roundline.cli.options import force_option, quiet_option

if TYPE_CHECKING:
    from roundline.simulate.session import Format

ENGINES: Final = (
    "sglang-mtp", "sglang-v1", "sglang-adaptive", "sglang-standalone", "sglang-block",
    "sglang-ngram", "vllm", "trtllm-one", "trtllm-two", "llama.cpp", "plain-graph", "plain-eager",
)  # fmt: skip
FORMATS: Final = ("nsys-sqlite", "nsys-parquetdir", "nsys-arrowdir", "torch")
_AT_LEAST_ONE: Final = click.IntRange(1)


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Folder to write."
)
@click.option("--case", help="A named capture instead of options: worked-example, nextn-study.")
@click.option(
    "--engine", type=click.Choice(ENGINES), default="sglang-mtp", show_default=True,
    help="Which server runs.",
)  # fmt: skip
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), default="nsys-sqlite", show_default=True,
    help="What the capture is written as.",
)  # fmt: skip
@click.option("--model", default="qwen3.6-27b", show_default=True, help="Shape of the model.")
@click.option("--draft-model", help="A model of its own that drafts, where the engine takes one.")
@click.option("--gpu", default="rtx-a6000", show_default=True, help="GPU of every rank.")
@click.option("--tp", type=_AT_LEAST_ONE, default=2, show_default=True, help="Ranks.")
@click.option(
    "--draft-steps", type=_AT_LEAST_ONE, default=3, show_default=True, help="Draft passes a round."
)
@click.option("--batch", type=_AT_LEAST_ONE, default=1, show_default=True, help="Sequences.")
@click.option(
    "--context", type=_AT_LEAST_ONE, default=240, show_default=True, help="Tokens per sequence."
)
@click.option("--rounds", type=_AT_LEAST_ONE, default=6, show_default=True, help="Full rounds.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all jitter.")
@click.option(
    "--extend", type=click.Choice(["graph", "eager"]), default="graph", show_default=True,
    help="How SGLang launches the draft pass after acceptance.",
)  # fmt: skip
@click.option(
    "--all-reduce", type=click.Choice(["custom", "nccl"]), default="custom", show_default=True,
    help="Who sums over the ranks.",
)  # fmt: skip
@click.option("--ranges/--no-ranges", default=False, help="Emit the ranges of the engine.")
@click.option("--warm-up", type=click.IntRange(0), default=0, help="Slow rounds at the start.")
@click.option("--prefill-after", type=int, multiple=True, help="A prompt follows this round.")
@click.option("--flush-after", type=int, multiple=True, help="The profiler flushes after it.")
@click.option("--nsys-schema", default="3.17.1", show_default=True, help="Export schema version.")
@click.option(
    "--cuda-graph-trace", type=click.Choice(["node", "graph"]), default="node", show_default=True,
    help="Record every graph node, or each replay as one span.",
)  # fmt: skip
@click.option(
    "--kernels", type=_AT_LEAST_ONE, help="Repeat the rounds up to so many kernels; no truth."
)
@force_option
@quiet_option
def command(
    output: Path,
    case: str | None,
    engine: str,
    format_: Format,
    model: str,
    draft_model: str | None,
    gpu: str,
    tp: int,
    draft_steps: int,
    batch: int,
    context: int,
    rounds: int,
    seed: int,
    extend: Literal["graph", "eager"],
    all_reduce: Literal["custom", "nccl"],
    ranges: bool,
    warm_up: int,
    prefill_after: tuple[int, ...],
    flush_after: tuple[int, ...],
    nsys_schema: str,
    cuda_graph_trace: Literal["node", "graph"],
    kernels: int | None,
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
    from roundline.simulate.session import SimulateOptions, simulate, write_bulk, write_capture

    if output.exists() and any(output.iterdir()) and not force:
        raise UsageError(f"{output} is not empty: choose another folder or pass --force")
    options = SimulateOptions(
        engine=engine, model=model, draft_model=draft_model, gpu=gpu, tp=tp,
        draft_steps=draft_steps, batch=batch, context=context, rounds=rounds, seed=seed,
        extend=extend, custom_all_reduce=all_reduce == "custom", ranges=ranges, warm_up=warm_up,
        prefill_after=prefill_after, flush_after=flush_after,
        cpu_ops=ranges and format_ == "torch",
    )  # fmt: skip
    if kernels is not None:
        written = write_bulk(options, output, kernels, format_)
        _say(f"{written:,} kernels written to {output}", quiet)
        return
    if case is not None:
        truth = write_case(case, output)
    else:
        truth = write_capture(
            options, simulate(options), output, format_,
            schema=nsys_schema, graphs=cuda_graph_trace,
        )  # fmt: skip
    ranks = len({item.rank for item in truth.rounds})
    found = len({item.round_id for item in truth.rounds})
    _say(f"{found} rounds on {ranks} ranks written to {output}", quiet)


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        click.echo(text, err=True)
