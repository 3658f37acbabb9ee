"""Reports go through the vendor's tool: its version decides how, its words reach the user."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nsys_exports import two_processes, write_parquetdir, write_sqlite

from roundline.cli import main
from roundline.errors import SourceError
from roundline.readers.ingest import IngestOptions, ingest
from roundline.store import open_store

Install = Callable[..., None]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A file that begins as every Nsight report does."""
    path = tmp_path / "my report.nsys-rep"
    path.write_bytes(b"NVIDIA Tegra Profiler Report 1.\x00\x01\x02")
    return path


@pytest.fixture
def nsys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a program called nsys on the search path; `body` is what its `export` does."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def install(version: str, body: str) -> None:
        program = folder / "nsys"
        program.write_text(
            f"#!{sys.executable}\nimport shutil, sys\n"
            "if sys.argv[1] == '--version':\n"
            f"    print('NVIDIA Nsight Systems version {version}-34567890v0')\n    sys.exit()\n"
            "kind = sys.argv[sys.argv.index('--type') + 1]\n"
            "output = sys.argv[sys.argv.index('--output') + 1]\n"
            f"{body}\n"
        )
        program.chmod(0o755)

    return install


def test_without_nsys_the_command_is_shown(
    report: Path, nsys: Install, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit code 4, and a command that can be pasted into a shell."""
    assert main(["ingest", str(report), "-o", str(tmp_path / "s")]) == 4
    message = capsys.readouterr().err
    assert "nsys export --type sqlite --output 'my report.sqlite' 'my report.nsys-rep'" in message
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("version", "kind"), [("2024.2.3.38", "parquetdir"), ("2023.4.4", "parquetdir"),
                          ("2023.2.3", "sqlite"), ("2020.4.3", "sqlite")]
)  # fmt: skip
def test_the_version_decides_what_is_exported(
    report: Path, nsys: Install, tmp_path: Path, version: str, kind: str
) -> None:
    """parquetdir exists since 2023.4; either way the same kernels come back."""
    sqlite = write_sqlite(tmp_path / "good.sqlite", two_processes())
    folder = write_parquetdir(tmp_path / "good_pqtdir", two_processes())
    nsys(
        version,
        f"assert kind == {kind!r}, kind\n"
        f"shutil.copytree({str(folder)!r}, output) if kind == 'parquetdir' else"
        f" shutil.copy({str(sqlite)!r}, output)",
    )
    ingest([report], tmp_path / "s", IngestOptions())
    store = open_store(tmp_path / "s")
    assert store.manifest.tables["kernels"] == 14
    assert store.manifest.sources[0].name == report.name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("Exportation error: Section Table Reference magic number mismatch.", "magic number"),
        (
            "Exportation error: Report was created in Nsight Systems version (2026.1), newer than"
            " your current version (2024.2).",
            "update nsys",
        ),
    ],
)
def test_a_failed_export_passes_the_words_on(
    report: Path, nsys: Install, tmp_path: Path, words: str, message: str
) -> None:
    """What the tool said is in the one line; nothing is left behind."""
    nsys("2024.2.3", f"print('chatter')\nsys.exit({words!r})")
    with pytest.raises(SourceError, match=message) as error:
        ingest([report], tmp_path / "s", IngestOptions())
    assert "Exportation error" in str(error.value)
    assert "chatter" not in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "s").exists()


def test_an_export_that_writes_nothing_is_an_error(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """Some versions end with code 0 and no file."""
    nsys("2024.2.3", "pass")
    with pytest.raises(SourceError, match="cannot export it"):
        ingest([report], tmp_path / "s", IngestOptions())


def test_another_program_called_nsys_is_noticed(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """A tool that does not say its version is not Nsight's."""
    nsys("", "pass")
    program = Path(shutil.which("nsys") or "")
    program.write_text(f"#!{sys.executable}\nprint('hello')\n")
    with pytest.raises(SourceError, match="is this Nsight's nsys"):
        ingest([report], tmp_path / "s", IngestOptions())
