"""Nsight reports (`.nsys-rep`, `.qdrep`): exported with an installed `nsys`, then read.

The report format is the vendor's own; only its tool opens it. The export goes to a temporary
directory, so that an export that dies leaves nothing behind.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from roundline.errors import SourceError, ToolMissingError
from roundline.readers.contract import Progress, ReadOptions, Sink, SourceFacts

_VERSION: Final = re.compile(r"version\s+(\d+)\.(\d+)(?:\.\d+)*", re.IGNORECASE)
_PARQUETDIR_SINCE: Final = (2023, 4)
_VERSION_TIMEOUT_S: Final = 60
_EXPORT_TIMEOUT_S: Final = 3600
_MESSAGE_LIMIT: Final = 300
# where the vendor's packages put it without touching the search path
INSTALL_PLACES: Final = (
    "/opt/nvidia/nsight-systems/*/bin/nsys",
    "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
    "/opt/nvidia/nsight-systems/*/target-linux-*/nsys",
    "/usr/local/cuda*/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys",
)


@dataclass(frozen=True)
class NsysTool:
    """An installed `nsys`; `version` is (year, release)."""

    executable: str
    version: tuple[int, int]

    @property
    def export_type(self) -> str:
        """The best export that this version writes: parquetdir scans fastest."""
        return "parquetdir" if self.version >= _PARQUETDIR_SINCE else "sqlite"

    def command(self, report: Path, output: Path) -> list[str]:
        """The export command; every table, nothing normalised."""
        return [
            self.executable, "export", "--type", self.export_type, "--force-overwrite", "true",
            "--output", str(output), str(report),
        ]  # fmt: skip


def read_nsys_report(
    path: Path, sink: Sink, options: ReadOptions, progress: Progress | None = None
) -> SourceFacts:
    """Export a report into a temporary directory and read the export.

    Raises:
        ToolMissingError: there is no `nsys` here; the message holds the command to run elsewhere.
        SourceError: `nsys` cannot open the report, or did not end in time.
    """
    tool = find_nsys(path)
    with tempfile.TemporaryDirectory(prefix="roundline-nsys-") as folder:
        export = export_report(tool, path, Path(folder))
        if tool.export_type == "parquetdir":
            from roundline.readers.nsys_columnar import read_nsys_columnar

            return read_nsys_columnar(export, sink, options, progress)
        from roundline.readers.nsys_sqlite import read_nsys_sqlite

        return read_nsys_sqlite(export, sink, options, progress)


def find_nsys(report: Path, places: Sequence[str] = INSTALL_PLACES) -> NsysTool:
    """The `nsys` on the search path, else the newest in the usual places, with its version.

    Raises:
        ToolMissingError: it is not installed.
        SourceError: it does not say its version.
    """
    executable = shutil.which("nsys") or _newest(places)
    if executable is None:
        raise ToolMissingError(
            f"{report} is an Nsight report and nsys is not installed: run"
            f" `{manual_export(report)}` where it is, then ingest what it writes"
        )
    text = _run([executable, "--version"], report, _VERSION_TIMEOUT_S).stdout
    match = _VERSION.search(text)
    if match is None:
        raise SourceError(
            f"{executable} --version says {_one_line(text)!r}: is this Nsight's nsys?"
        )
    return NsysTool(executable, (int(match[1]), int(match[2])))


def _newest(places: Sequence[str]) -> str | None:
    """The program below the highest version number; packages of several versions coexist."""
    found = (path for place in places for path in _matches(place) if os.access(path, os.X_OK))
    return max(map(str, found), key=lambda path: (_numbers(path), path), default=None)


def _matches(place: str) -> Iterable[Path]:
    return (path for path in Path("/").glob(place.removeprefix("/")) if path.is_file())


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def manual_export(report: Path) -> str:
    """The command that exports a report by hand, for a shell."""
    output = report.with_suffix(".sqlite").name
    return f"nsys export --type sqlite --output {shlex.quote(output)} {shlex.quote(report.name)}"


def export_report(
    tool: NsysTool, report: Path, folder: Path, timeout_s: float = _EXPORT_TIMEOUT_S
) -> Path:
    """Export `report` below `folder` and return what was written.

    Raises:
        SourceError: the export failed or did not end in time; the tool's own words are in the
            message.
    """
    suffix = "_pqtdir" if tool.export_type == "parquetdir" else ".sqlite"
    output = folder / f"export{suffix}"
    done = _run(tool.command(report.resolve(), output), report, timeout_s)
    if done.returncode or not output.exists():
        raise SourceError(f"{report}: {_failure(done, tool)}")
    return output


def _failure(done: subprocess.CompletedProcess[str], tool: NsysTool) -> str:
    text = _one_line(f"{done.stderr}\n{done.stdout}")
    year, release = tool.version
    if "newer than your current version" in text or "Version number is invalid" in text:
        return f"the report is newer than the installed nsys {year}.{release}: update nsys ({text})"
    reason = text or f"exit code {done.returncode} without a word"
    return f"nsys {year}.{release} cannot export it: {reason}"


def _run(command: list[str], report: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        ) as process:  # fmt: skip
            try:
                stdout, stderr = process.communicate(timeout=timeout_s)
            except BaseException:  # nsys works in children, which would go on writing
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except subprocess.TimeoutExpired as error:
        raise SourceError(
            f"{report}: `{shlex.join(command)}` did not end within {timeout_s} s: export by hand"
        ) from error
    except OSError as error:
        raise ToolMissingError(f"{command[0]} does not run ({error}): reinstall nsys") from error
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _one_line(text: str) -> str:
    """The lines that carry the reason, else all of them, joined and cut."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()] or lines
    return " · ".join(errors)[:_MESSAGE_LIMIT]
