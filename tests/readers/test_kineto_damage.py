"""Damaged and unusual torch traces: what can be read is read, and what was lost is said."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from test_kineto import BASE_NS, HEAD, kernel, read, trace

from roundline.errors import SourceError, TruncatedSourceError
from roundline.readers import kineto_stream
from roundline.readers.kineto_columns import exact_ns, nanoseconds
from roundline.readers.kineto_events import is_unpadded

COUNT = 2_000
EVENTS = [kernel(i, name=f"kernel_{i}") for i in range(COUNT)]
PLAIN = json.dumps(HEAD | {"traceEvents": EVENTS}).encode()
MARK = b"kernel_777"
AT = PLAIN.index(b'{"ph"', PLAIN.index(b"kernel_776"))
FIRST_END = PLAIN.index(b"}, {") + 1


@pytest.fixture(autouse=True, params=[1 << 12, 1 << 21], ids=["small-spans", "one-span"])
def _spans(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_stream, "CHUNK_BYTES", request.param)


def write(tmp_path: Path, text: bytes, name: str = "t.json") -> Path:
    """A file of this text."""
    path = tmp_path / name
    path.write_bytes(text)
    return path


def renamed(name: bytes) -> bytes:
    """The trace with one name replaced by raw bytes."""
    return PLAIN.replace(MARK, name)


REPAIRED: dict[str, tuple[bytes, str]] = {
    "control character": (renamed(b"a\x01b"), "a\x01b"),
    "newline": (renamed(b"a\nb"), "a\nb"),
    "quotes": (renamed(b'f("x", "y")'), 'f("x", "y")'),
    "quote and control": (renamed(b'f("\x02")'), 'f("\x02")'),
    "one quote": (renamed(b'5" pipe'), '5" pipe'),
    "invalid utf-8": (renamed(b"a\xffb"), "a\ufffdb"),
    "bad escape": (renamed(rb"C:\work\x"), r"C:\work\x"),
    "lone surrogate": (renamed(rb"a\ud800b"), "a\ufffdb"),
}


@pytest.mark.parametrize("fault", REPAIRED)
def test_faulty_name_is_repaired(tmp_path: Path, fault: str) -> None:
    """All events are kept, the name reads as meant, one repair is counted with its offset."""
    text, name = REPAIRED[fault]
    reading = read(write(tmp_path, text))
    assert reading.kernel_names() == [
        name if i == 777 else f"kernel_{i}" for i in range(COUNT)
    ]  # fmt: skip
    (finding,) = (d for d in reading.facts.diagnostics if d.code == "malformed_events")
    assert (finding.count, finding.severity) == (1, "warning")
    assert f"byte {AT}" in finding.detail


@pytest.mark.parametrize("word", [b"NaN", b"nan", b"inf", b"Infinity", b"-Infinity", b"-inf"])
def test_numbers_that_json_does_not_know(tmp_path: Path, word: bytes) -> None:
    """A value such as `inf` becomes NULL and keeps its event."""
    text = PLAIN.replace(b'"context": 1, "stream": 7, "correlation": 5,',
                         b'"context": %b, "stream": 7, "correlation": 5,' % word)  # fmt: skip
    reading = read(write(tmp_path, text))
    assert len(reading.kernels) == COUNT
    assert [k["context_id"] for k in reading.kernels if k["correlation_id"] == 5] == [None]


def _with_second(change: Callable[[bytes], bytes]) -> bytes:
    start = PLAIN.index(b"[{", PLAIN.index(b"traceEvents")) + 1
    return PLAIN[:start] + change(PLAIN[start:])


WHOLE: dict[str, bytes] = {
    "trailing comma": PLAIN[:-2] + b",]}",
    "missing comma": PLAIN.replace(b"}, {", b"} {", 1),
    "double comma": PLAIN.replace(b"}, {", b"},, {", 1),
    "leading comma": _with_second(lambda rest: b" , " + rest),
    "byte order mark": b"\xef\xbb\xbf" + PLAIN,
    "null and empty events": _with_second(lambda rest: b"null, {}, 7, " + rest),
    "list": json.dumps(EVENTS).encode(),
    "unterminated list": json.dumps(EVENTS).encode()[:-1],
    "unterminated list with comma": json.dumps(EVENTS).encode()[:-1] + b",\n",
    "lines": b"\n".join(json.dumps(e).encode() for e in EVENTS),
    "blank lines": b"\n\n".join(json.dumps(e).encode() for e in EVENTS) + b"\n\n",
    "NUL padding": PLAIN + b"\0" * 10_000,
    "duplicate keys": PLAIN.replace(b'"name": "kernel_777"', b'"name": "x", "name": "kernel_777"'),
    "string times": PLAIN.replace(b'"ts": 7770.0', b'"ts": "7770.0"'),
    "huge integer": PLAIN.replace(b'"context": 1', b'"Comms Id": 99999999999999999999999', 9),
    "args null": PLAIN.replace(b'"args": {"device": 0', b'"args": null, "old": {"device": 0', 3),
    "args list": PLAIN.replace(b'"args": {"device": 0', b'"args": [1], "old": {"device": 0', 3),
    "text in numbers": PLAIN.replace(b'"context": 1', b'"context": "N/A"', 50),
    "number as pid": PLAIN.replace(b'"pid": 0', b'"pid": 0.5', 3),
    "key inside a string": json.dumps(
        {"note": '"traceEvents": [{"ph": "X"}, {', **HEAD, "traceEvents": EVENTS}
    ).encode(),
    "braces inside a name": PLAIN.replace(b'"cat": "kernel", "name": "kernel_777"',
        b'"x": "}, {", "y": "}]}", "cat": "kernel", "name": "kernel_777"'),
    "objects inside an event": _with_second(
        lambda rest: b'{"ph": "M", "name": "n", "args": {"l": [%b]}}, ' % b", ".join(
            [b'{"a": 1}'] * 5_000) + rest
    ),
    "event of 3 MB": _with_second(
        lambda rest: (
            b'{"ph": "M", "name": "n", "args": {"l": "%b"}}, ' % (b"x{}, " * 600_000) + rest
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("oddity", WHOLE)
def test_unusual_text_is_read_in_full(tmp_path: Path, oddity: str) -> None:
    """No event of an unusual but undamaged text is lost or changed, and none is called lost."""
    reading = read(write(tmp_path, WHOLE[oddity]))
    assert reading.kernel_names() == [f"kernel_{i}" for i in range(COUNT)]
    assert [k["start_ns"] for k in reading.kernels] == [10_000 * i for i in range(COUNT)]
    assert not reading.facts.truncated
    assert "malformed_events" not in reading.codes()


@pytest.mark.parametrize("cut", [b"kernel_1999", b'"dur": 2.0, "args"', b"}, {"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_truncated_text_keeps_complete_events(tmp_path: Path, cut: bytes, packed: bool) -> None:
    """A cut trace is refused with its number of events; the option keeps just these, marked."""
    text = PLAIN[: PLAIN.rindex(cut) + len(cut) // 2]
    path = write(tmp_path, gzip.compress(text) if packed else text)
    with pytest.raises(TruncatedSourceError, match=f"after {COUNT - 1} complete events"):
        read(path)
    reading = read(path, allow_truncated=True)
    assert reading.kernel_names() == [f"kernel_{i}" for i in range(COUNT - 1)]
    assert reading.facts.truncated
    assert reading.facts.wall_clock_base_ns == BASE_NS
    assert set(reading.codes()) == {"truncated"}


def test_crash_leaves_nuls(tmp_path: Path) -> None:
    """Pages of NULs after a torn event are a truncation."""
    text = PLAIN[: len(PLAIN) // 2] + b"\0" * 5_000_000
    reading = read(write(tmp_path, text), allow_truncated=True)
    assert reading.facts.truncated
    assert reading.kernel_names() == [f"kernel_{i}" for i in range(len(reading.kernels))]
    assert len(reading.kernels) == text.count(b'"block": [128, 1, 1]}}')


@pytest.mark.parametrize("lost_bytes", [1, 8, 20, 5_000])
def test_truncated_gzip(tmp_path: Path, lost_bytes: int) -> None:
    """A gzip file without its trailer or its last blocks: whole if all events were in it."""
    path = write(tmp_path, gzip.compress(PLAIN)[:-lost_bytes], "t.json.gz")
    reading = read(path, allow_truncated=True)
    whole = len(reading.kernels) == COUNT
    assert reading.facts.truncated != whole
    assert whole == (lost_bytes <= 8)


GZIP: dict[str, bytes] = {
    "several members": gzip.compress(PLAIN[:90_000]) + gzip.compress(PLAIN[90_000:]),
    "zero padding": gzip.compress(PLAIN) + b"\0" * 1_000_000,
    "padding between members": gzip.compress(PLAIN[:90_000])
    + b"\0" * 512
    + gzip.compress(PLAIN[90_000:]),
    "garbage after": gzip.compress(PLAIN) + b"garbage" * 100,
    "one byte after": gzip.compress(PLAIN) + b"\x1f",
}


@pytest.mark.parametrize("form", GZIP)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_gzip_is_known_by_its_magic(tmp_path: Path, form: str, name: str) -> None:
    """Any suffix, several members, padding and garbage after the end."""
    assert len(read(write(tmp_path, GZIP[form], name)).kernels) == COUNT


def test_plain_text_named_gz(tmp_path: Path) -> None:
    """A plain trace under a `.gz` name is read as what it is."""
    assert len(read(write(tmp_path, PLAIN, "t.json.gz")).kernels) == COUNT


@pytest.mark.parametrize(("magic", "name"), [(b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")])
def test_other_compressions_are_named(tmp_path: Path, magic: bytes, name: str) -> None:
    """What is not read says what it is."""
    with pytest.raises(SourceError, match=name):
        read(write(tmp_path, magic + b"\0" * 100))


def test_interleaved_writers_are_refused(tmp_path: Path) -> None:
    """A second file head among the events means that two ranks wrote one file."""
    middle = PLAIN.index(b"kernel_1000")
    text = PLAIN[:middle] + PLAIN[: len(PLAIN) // 2] + PLAIN[middle:]
    with pytest.raises(SourceError, match="interleaved writers"):
        read(write(tmp_path, text), lenient=True, allow_truncated=True)


def test_concatenated_traces_are_refused(tmp_path: Path) -> None:
    """A second trace after the end is refused too, not silently left out."""
    with pytest.raises(SourceError, match="interleaved writers"):
        read(write(tmp_path, PLAIN + b"\n" + PLAIN))


def test_events_after_the_end_are_refused(tmp_path: Path) -> None:
    """A stray bracket does not make the events behind it disappear."""
    text = PLAIN.replace(b"}, {", b"}], {", 1)
    with pytest.raises(SourceError, match="second trace"):
        read(write(tmp_path, text))


def test_many_broken_events_are_counted_one_by_one(tmp_path: Path) -> None:
    """Unbalanced quotes everywhere cost only the events that have them."""
    text = re.sub(rb'"(kernel_\d*[13579])", "pid": 0', rb'"\1, "pid": ?', PLAIN)
    reading = read(write(tmp_path, text), lenient=True)
    assert reading.kernel_names() == [f"kernel_{i}" for i in range(0, COUNT, 2)]
    assert reading.codes() == {"malformed_events": COUNT // 2}


def test_lost_gpu_event_is_loud(tmp_path: Path) -> None:
    """A kernel beyond repair is an error; lenient reads the rest and says so."""
    path = write(tmp_path, PLAIN.replace(b'"kernel_777", "pid": 0', b'"kernel_777" "pid": :::'))
    with pytest.raises(SourceError, match=rf"1 GPU events .* byte {AT}; --lenient"):
        read(path)
    reading = read(path, lenient=True)
    assert len(reading.kernels) == COUNT - 1
    (finding,) = (d for d in reading.facts.diagnostics if d.code == "malformed_events")
    assert (finding.severity, finding.count) == ("error", 1)


def test_lost_host_event_is_counted(tmp_path: Path) -> None:
    """A host event beyond repair costs a warning only."""
    bad = b'{"ph": "X", "cat": "cpu_op", "name": ???}, '
    reading = read(write(tmp_path, _with_second(lambda rest: bad + rest)))
    assert len(reading.kernels) == COUNT
    assert reading.codes() == {"malformed_events": 1}


def test_torn_event_does_not_take_the_next_one_along(tmp_path: Path) -> None:
    """Where a write was torn, the whole event behind it is still read."""
    torn = PLAIN[:AT] + PLAIN[AT : AT + 40] + PLAIN[AT:]
    reading = read(write(tmp_path, torn), lenient=True)
    assert reading.kernel_names() == [f"kernel_{i}" for i in range(COUNT)]
    assert reading.codes() == {"malformed_events": 1}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(b'"schemaVersion": 1', b'"schemaVersion": 1, "k": "a"b\\"', 1),
        lambda text: text[:-1] + b', "WARNING": ["say "hi""]}',
        lambda text: text[:-1],
    ],
    ids=["head", "tail", "cut tail"],
)
def test_malformed_metadata_keeps_events_and_clock(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    """Events survive a malformed head or tail, and so do the keys that can be found."""
    reading = read(write(tmp_path, damage(PLAIN)))
    assert len(reading.kernels) == COUNT
    assert reading.facts.wall_clock_base_ns == BASE_NS
    assert reading.facts.devices[0].name == "NVIDIA RTX A6000"
    assert reading.codes() == {"malformed_metadata": 1}


@pytest.mark.parametrize("rest", [b"", b', "traceName": "x"'])
def test_empty_event_list_is_not_truncated(tmp_path: Path, rest: bytes) -> None:
    """No events is a valid trace."""
    text = b'{"schemaVersion": 1, "traceEvents": []' + rest + b"}"
    assert read(write(tmp_path, text)).facts.truncated is False


@pytest.mark.parametrize("text", [b"", b"{}", b"   ", b'{"traceEvents": null}', b"\0\0\0"])
def test_no_trace_at_all(tmp_path: Path, text: bytes) -> None:
    """A file without events is refused by name."""
    with pytest.raises(SourceError, match="no traceEvents"):
        read(write(tmp_path, text))


@pytest.mark.parametrize("opening", [b'{"a":', b"[", b'{"ph": "X", "args": {"x": "'])
def test_bombs_end_in_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opening: bytes
) -> None:
    """Endless nesting and endless strings are refused at a limit, not held in memory."""
    monkeypatch.setattr(kineto_stream, "LIMIT_BYTES", 1 << 20)
    text = b'{"traceEvents": [' + opening * (3_000_000 // len(opening))
    with pytest.raises(SourceError, match="no event ends within"):
        read(write(tmp_path, text))


def test_deeply_nested_event_is_lost_alone(tmp_path: Path) -> None:
    """Nesting beyond the decoder's depth costs that event."""
    deep = b'{"ph": "M", "cat": "x", "args": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}, "
    reading = read(write(tmp_path, _with_second(lambda rest: deep + rest)))
    assert len(reading.kernels) == COUNT
    assert reading.codes() == {"malformed_events": 1}


# --- times ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1711111111111111.123", 1_711_111_111_111_111_123),
        ("1711111111111111", 1_711_111_111_111_111_000),
        ("4909914216285.224", 4_909_914_216_285_224),
        ('"4909914216285.224"', 4_909_914_216_285_224),
        ("4.5e3", 4_500_000),
    ],
)
def test_times_are_exact(tmp_path: Path, text: str, ns: int) -> None:
    """Integers, doubles, 19 digits, strings and exponents become the nanosecond they mean."""
    path = write(
        tmp_path,
        json.dumps({"traceEvents": [kernel(0)]}).replace('"ts": 0.0', f'"ts": {text}').encode(),
    )
    reading = read(path)
    assert [k["start_ns"] for k in reading.kernels] == [ns]
    assert reading.facts.wall_clock_base_ns == (0 if ns > 10**18 else None)
    assert ("clock_unknown" in {d.code for d in reading.facts.diagnostics}) == (ns < 10**18)


def test_doubles_tell_nanoseconds_apart() -> None:
    """The vectorised formula agrees with decimal arithmetic up to the largest offset to a base."""
    values = [(7_889_237_000_000_000 - 7 * i**3) / 1000 for i in range(20_000)]
    assert nanoseconds(values).to_pylist() == [
        7_889_237_000_000_000 - 7 * i**3 for i in range(20_000)
    ]
    assert [exact_ns(v) for v in values[:50]] == nanoseconds(values[:50]).to_pylist()


def test_unpadded_fractions_are_nanosecond_counts(tmp_path: Path) -> None:
    """Nightlies of March 2024 wrote 7 ns as `.7`; padded and double-printed times stay."""
    base = 1_711_111_111_111_111
    wanted = [base * 1000 + i * 1000 + ns for i, ns in enumerate((7, 70, 700, 123, 450))]
    events = [kernel(i) for i in range(len(wanted))]
    text = json.dumps({"traceEvents": events})
    for i, ns in enumerate(wanted):
        text = text.replace(f'"ts": {10.0 * i}', f'"ts": {ns // 1000}.{ns % 1000}')
    assert [k["start_ns"] for k in read(write(tmp_path, text.encode())).kernels] == wanted


@pytest.mark.parametrize(
    ("times", "unpadded"),
    [
        (["1.7", "1.70", "1.700"], True),
        (["1.007", "1.070", "1.700"], False),
        (["1.5", "1.25", "1.75"], False),
        ([], False),
    ],
)
def test_unpadded_needs_evidence(times: list[str], unpadded: bool) -> None:
    """Only short fractions beside kept trailing zeros, and no leading zero, are unpadded."""
    assert is_unpadded([Decimal(time) for time in times]) is unpadded


@pytest.mark.parametrize(
    ("changes", "code", "rows"),
    [
        ({"ts": 0, "dur": 0}, "invalid_time", [(0, 0)]),
        ({"ts": None}, "invalid_time", []),
        ({"ts": "soon"}, "invalid_time", []),
        ({"ts": 1, "dur": -5}, "implausible_duration", [(1000, 1000)]),
        ({"ts": 1, "dur": 3.6e9 + 1}, "implausible_duration", [(1000, 1000)]),
        ({"ts": 1, "dur": 1.8446744073709552e16}, "implausible_duration", [(1000, 1000)]),
        ({"ts": 1, "dur": None}, "implausible_duration", [(1000, 1000)]),
        ({"ts": 1, "name": "unknown"}, "unnamed_kernels", [(1000, 3000)]),
    ],
)
def test_odd_rows_are_counted(
    tmp_path: Path, changes: dict[str, Any], code: str, rows: list[tuple[int, int]]
) -> None:
    """Impossible times and lost names are counted under a stable code."""
    reading = read(trace(tmp_path / "t.json", [kernel(0, **changes)]))
    assert reading.codes() == {code: 1}
    assert [(k["start_ns"], k["end_ns"]) for k in reading.kernels] == rows
