"""Documents cannot rot: they are held against what the program does."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import click
import pytest

from roundline.capture.annotate import PHASES, phase
from roundline.capture.recipes import RECIPES
from roundline.cli import COMMANDS, cli, main
from roundline.errors import UsageError
from roundline.report.dictionary import data_dictionary
from roundline.warehouse.parameters import Parameters, parameter_tables

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_data_dictionary_is_what_the_sql_says() -> None:
    """docs/data-dictionary.md is generated; `make docs` brings it up to date."""
    assert (ROOT / "docs" / "data-dictionary.md").read_text(encoding="utf-8") == data_dictionary()


def test_the_readme_lists_every_command() -> None:
    """One row per command, and no command that does not exist."""
    listed = re.findall(r"^\| `roundline ([a-z-]+)` \|", README, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)


def test_options_in_the_readme_exist() -> None:
    """Every option that a README command line uses is one of that command."""
    for line in re.findall(r"^ +roundline (.+)$", README, re.MULTILINE):
        verb, *words = line.split()
        module = import_module(f"roundline.cli.{COMMANDS[verb][0]}")
        known = {option for p in module.command.params for option in p.opts}
        assert {word for word in words if word.startswith("-")} <= known, line


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_explains_itself(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help works, says what the command does, and documents every option."""
    assert main([verb, "--help"]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 5
    with click.Context(cli) as context:
        command = cli.get_command(context, verb)
    assert command is not None
    undocumented = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
    assert undocumented == []


def test_local_links_lead_somewhere() -> None:
    """Files that README and CONTRIBUTING point to are there."""
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
            assert (ROOT / target).exists(), target


def test_our_annotations_are_recognised() -> None:
    """Each phase that can be annotated has a range rule of its own."""
    rules = next(t for t in parameter_tables(Parameters()) if t.name == "range_rules")
    for name in PHASES:
        phases = [row[2] for row in rules.rows if re.search(row[3], f"roundline:{name}")]
        assert phases == [name]


def test_a_phase_that_does_not_exist_is_refused() -> None:
    """A misspelt annotation is an error where it is written, not a silent gap in a capture."""
    with pytest.raises(UsageError, match="drafting"), phase("drafting"):  # type: ignore[arg-type]
        pass
    with phase("draft"):
        pass


@pytest.mark.parametrize("engine", RECIPES)
def test_every_recipe_records_graph_nodes(engine: str) -> None:
    """The commands avoid the default that hides the kernels of graphs."""
    commands = [step.command for step in RECIPES[engine].steps if "nsys profile" in step.command]
    assert commands
    assert all("--cuda-graph-trace=node" in command for command in commands)
