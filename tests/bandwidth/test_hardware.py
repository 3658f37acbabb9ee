"""GPUs are found by the name that a driver prints, and never guessed."""

from __future__ import annotations

import csv
from fractions import Fraction

import pytest

from roundline.bandwidth.hardware import (
    catalogue,
    cross_check,
    custom_gpu,
    find_gpu,
    parse_bandwidth,
)
from roundline.errors import UnknownNameError, UsageError


def test_every_device_of_the_table_is_in_the_catalogue(shared):
    """The catalogue holds the table's bandwidth, memory and names, digit for digit."""
    with (shared / "model" / "hardware.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(catalogue()) == 60
    for row in rows:
        gpu = find_gpu(row["device_names"].split("|")[0])
        assert gpu.key == row["key"]
        if gpu.key != "mi250x":  # a profiler sees one of its two dies
            assert gpu.hbm_gbps == Fraction(row["bw_gbs"])
            assert gpu.memory_gb == Fraction(row["mem_gb"])


def test_one_die_of_a_two_die_board_is_one_device():
    """A bandwidth that is never reached by one device would halve every achieved share."""
    assert find_gpu("AMD Instinct MI250X").hbm_gbps == 1638


@pytest.mark.parametrize("gpu", catalogue(), ids=lambda gpu: gpu.key)
def test_every_spelling_of_a_name_finds_its_own_device(gpu):
    """Key, driver name, name without the vendor and any case are the same device."""
    for name in (gpu.key, *gpu.device_names):
        for spelling in (name, name.upper(), name.lower(), name.removeprefix("NVIDIA ")):
            assert find_gpu(spelling) == gpu


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("RTX A6000", "rtx_a6000"),
        ("A6000", "rtx_a6000"),
        ("RTX 6000 Ada", "rtx_6000_ada"),
        ("3090", "rtx_3090"),
        ("RTX A6000 48GB", "rtx_a6000"),
        ("A100 SXM 80GB", "a100_sxm_80"),
        ("H100 SXM5", "h100_sxm"),
        ("GPU 0: NVIDIA RTX A6000 (UUID: GPU-1f2e)", "rtx_a6000"),
        ("H20-3e", "h20_3e"),
    ],
)
def test_an_unambiguous_short_name_is_enough(name, key):
    """A run of whole words that occurs in one device's name finds it."""
    assert find_gpu(name).key == key


@pytest.mark.parametrize(
    "name", ["H100", "H100 80GB", "A100", "A100 80GB", "GH200", "RTX PRO 6000", "V100", "PCIe"]
)
def test_an_ambiguous_name_lists_its_candidates(name):
    """Two products of one chip differ in bandwidth, so the user is asked."""
    with pytest.raises(UnknownNameError, match=r"may be NVIDIA.*|may be Tesla.*") as error:
        find_gpu(name)
    assert "--hbm-gbps" in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        "", "GeForce 9999", "RTX 4090 Laptop GPU", "RTX 4080 SUPER", "Quadro RTX 6000",
        "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "A6000 Ada", "A100 SXM 64GB",
    ],
)  # fmt: skip
def test_another_product_is_never_taken_for_a_known_one(name):
    """Extra words name other hardware: there is no silent default."""
    with pytest.raises(UnknownNameError, match="--hbm-gbps"):
        find_gpu(name)


def test_a_whole_decode_step_is_no_achievable_bandwidth():
    """Only pure memory kernels bound what a GEMM may reach."""
    a40, a6000 = find_gpu("A40"), find_gpu("RTX A6000")
    assert a40.stream_fraction == Fraction("0.976")
    assert a6000.measured is not None
    assert not a6000.measured.is_stream
    assert a6000.stream_fraction == Fraction("0.95")


def test_nvlink_is_assumed_only_where_it_is_built_in():
    """An optional bridge may not be there."""
    assert find_gpu("H200").has_nvlink
    assert not find_gpu("RTX A6000").has_nvlink
    assert not find_gpu("H100 NVL").has_nvlink


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("768", Fraction(768)),
        ("936.2 GB/s", Fraction("936.2")),
        ("3.35TB/s", Fraction(3350)),
        ("1GiB/s", Fraction(2**30, 10**9)),
    ],
)
def test_a_bandwidth_has_units(text, gbps):
    """GiB and GB differ by 7.4 %, so a stated unit is honoured exactly."""
    assert parse_bandwidth(text) == gbps


@pytest.mark.parametrize("text", ["", "0", "-5", "fast", "768 GHz"])
def test_what_is_no_bandwidth_is_refused(text):
    """The message shows how to write one."""
    with pytest.raises(UsageError, match=r"3\.35TB/s"):
        parse_bandwidth(text)


def test_a_unit_mix_between_two_sources_is_named():
    """7.4 % apart is the mark of GiB taken for GB; 2 % apart is agreement."""
    gpu = find_gpu("RTX A6000")
    assert cross_check(gpu, Fraction("768.096")) is None
    assert "GiB" in (cross_check(gpu, Fraction(768 * 2**30, 10**9)) or "")
    other = cross_check(gpu, Fraction(384)) or ""
    assert "-50.0 %" in other
    assert "GiB" not in other


def test_an_unknown_card_works_with_its_bandwidth():
    """The bandwidth alone is enough for a floor."""
    gpu = custom_gpu("Some Card", Fraction(512))
    assert (gpu.hbm_gbps, gpu.memory_bytes, gpu.confidence) == (512, 0, "user")
    with pytest.raises(UsageError):
        custom_gpu("Some Card", Fraction(0))


def test_a_bandwidth_that_contradicts_the_datasheet_is_noted():
    """The user's number is used, and the difference is kept for the report."""
    given_, datasheet = (find_gpu("RTX A6000").with_bandwidth(Fraction(g)) for g in (715, 768))
    assert "-6.9 %" in given_.note
    assert "GiB" in given_.note
    assert datasheet.note == ""
