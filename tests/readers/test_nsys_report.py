"""Reports go through the vendor's tool: its version decides how, its words reach the user."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from nsys_exports import two_processes, write_parquetdir, write_sqlite

from roundline.cli import main
from roundline.errors import SourceError, ToolMissingError
from roundline.readers.ingest import IngestOptions, ingest
from roundline.readers.nsys_report import INSTALL_PLACES, NsysTool, export_report, find_nsys
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
    if any(any(Path("/").glob(place.removeprefix("/"))) for place in INSTALL_PLACES):
        pytest.skip("this machine has nsys where its packages put it")
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


def test_a_report_that_is_cut_is_said_in_the_words_of_the_tool(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """nsys prints the reason behind a prefix; the advice to update belongs to other failures."""
    nsys("2024.2.3", "sys.exit('Exportation error: Cannot read from stream.')")
    with pytest.raises(SourceError, match=r"nsys 2024\.2 cannot export it: Exportation error: Can"):
        export_report(find_nsys(report, ()), report, tmp_path)


def install_below(folder: Path, version: str) -> Path:
    """A program in a folder named by its version, as the vendor's packages are laid out."""
    program = folder / version / "bin" / "nsys"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nprint('NVIDIA Nsight Systems version {version}')\n")
    program.chmod(0o755)
    return program


def test_the_newest_of_the_usual_places_is_taken(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """Packages leave the search path alone; 2024.10 is newer than 2024.9."""
    programs = [install_below(tmp_path / "opt", v) for v in ("2024.9.1", "2024.10.1", "2020.3.4")]
    tool = find_nsys(report, [f"{tmp_path}/opt/*/bin/nsys", f"{tmp_path}/absent*/nsys"])
    assert tool == NsysTool(str(programs[1]), (2024, 10))


def test_the_search_path_wins_over_the_usual_places(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """What the user put on the path is what the user wants."""
    nsys("2023.2.3", "pass")
    install_below(tmp_path / "opt", "2025.1.1")
    assert find_nsys(report, [f"{tmp_path}/opt/*/bin/nsys"]).version == (2023, 2)


def test_a_file_that_does_not_run_is_no_tool(report: Path, nsys: Install, tmp_path: Path) -> None:
    """A leftover without the right to execute is passed over."""
    install_below(tmp_path / "opt", "2024.9.1").chmod(0o644)
    with pytest.raises(ToolMissingError, match="nsys is not installed"):
        find_nsys(report, [f"{tmp_path}/opt/*/bin/nsys"])


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked up in /proc")
def test_an_export_without_end_is_stopped_with_its_children(
    report: Path, nsys: Install, tmp_path: Path
) -> None:
    """The message shows the command; no child goes on writing into the folder."""
    child = tmp_path / "child"
    nsys(
        "2024.2.3",
        "import subprocess, time\n"
        f"process = subprocess.Popen([{sys.executable!r}, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(child)!r} + '.new', 'w').write(str(process.pid))\n"
        f"import os; os.rename({str(child)!r} + '.new', {str(child)!r})\n"
        "time.sleep(600)",
    )
    with pytest.raises(SourceError, match=r"export --type parquetdir .* did not end within 3"):
        export_report(find_nsys(report, ()), report, tmp_path, timeout_s=3)
    pid = int(child.read_text())
    for _ in range(100):
        if not is_running(pid):
            return
        time.sleep(0.05)
    os.kill(pid, 9)
    pytest.fail("a child of nsys survived")
