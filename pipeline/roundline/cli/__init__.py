"""The `roundline` command: one module per verb, loaded only when its verb is used."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

from roundline import __version__
from roundline.errors import RoundlineError

# verb -> (module below roundline.cli, what `roundline --help` says of it)
COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "ingest": ("ingest", "Read captures into a Parquet store."),
    "attribute": ("attribute", "Rounds by phase and category, idle by cause."),
    "predict": ("predict", "What a round must read and what that must cost."),
    "reconcile": ("reconcile", "The ledger: predicted against measured, term by term."),
    "what-if": ("what_if", "The measured round with something changed."),
    "report": ("report", "Write the ledger as Markdown, HTML, JSON or CSV."),
    "query": ("query", "Ask a store with SQL, read-only."),
    "doctor": ("doctor", "What a capture lacks and how to capture it."),
    "capture": ("capture", "How to record a capture of an engine."),
    "simulate": ("simulate", "Write a synthetic capture with known truth."),
}


class _LazyGroup(click.Group):
    """A group that knows its verbs by name and imports a verb's module on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"roundline.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = _nearest(args[0])
            raise click.UsageError(f"No such command {args[0]!r}.{near}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(verb, summary) for verb, (_, summary) in COMMANDS.items()])


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="roundline")
def cli() -> None:
    """Account for every nanosecond of an LLM decode round.

    Commands that take a STORE also take capture files and ingest them first.
    """


def main(args: list[str] | None = None) -> int:
    """Run the command line; the one place where an error becomes a line and an exit code."""
    try:
        cli.main(args=args, prog_name="roundline", standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.Abort:
        return _fail("interrupted", 130)
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "roundline"
        return _fail(f"{error.format_message()} (see '{context} --help')", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), 3)
    except RoundlineError as error:
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except MemoryError:
        return _fail("out of memory: the input needs more than this machine has", 3)
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        return _fail(f"cannot access{where}: {error.strerror or error}", 3)
    return 0


def _fail(message: str, exit_code: int) -> int:
    one_line = " ".join(message.split())
    click.echo(f"roundline: {one_line}", err=True)
    return exit_code
