"""A calibration recovers what a capture was made of, shows its errors, and writes a profile."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_example import exchanges, measured, predicted

from roundline.bandwidth.communication import CollectiveCost, LinkCosts
from roundline.bandwidth.hardware import find_gpu
from roundline.bandwidth.profile import (
    FittedEfficiency,
    Line,
    Origin,
    Profile,
    ProfiledCollective,
    dump_profile,
    read_profile,
)
from roundline.bandwidth.round_floor import predict
from roundline.errors import EvidenceError, UsageError
from roundline.reconcile.calibration import STREAMS, WEIGHTS, Calibration, calibrate, with_profile
from roundline.reconcile.demands import demands_of
from roundline.reconcile.exchanges import Exchange
from roundline.reconcile.line_fit import Sample, fit_line
from roundline.reconcile.measured import MatrixRead, MeasuredRank
from roundline.store.manifest import Manifest

PEAK_GBPS = 768.0
MANIFEST = Manifest(1, "0.1.0", (), (0,), {}, 0, {}, (), False, {})
TRUTH = FittedEfficiency(
    gemm=Fraction(88, 100), gemm_unpacking=Fraction(7, 10), stream=Fraction(6, 10),
    kernel_latency_ns=7_000, node_latency_ns=1_700,
    gemm_latency_ns=5_000, unpacking_latency_ns=9_000,
)  # fmt: skip
REDUCE = CollectiveCost("nccl", "pcie", Fraction(17_000), Fraction(6, 100), "truth")
GATHER = CollectiveCost("nccl", "pcie", Fraction(9_000), Fraction(7, 100), "truth")


def _true_round():
    floor = predicted()
    return predict(
        floor.model, floor.gpu, floor.workload, floor.switches, TRUTH, LinkCosts(REDUCE, GATHER)
    )


def _captured(floor) -> MeasuredRank:
    """A rank that ran at the truth: terms, and every matrix at its time."""
    reads = []
    for demand in demands_of(floor).matrices:
        phase = "verify" if demand.module == "target" else "draft"
        ns = float(TRUTH.weight_read_ns(Fraction(demand.bytes, 768), unpacks=False))
        reads.append(MatrixRead(phase, demand.matrix, 1.0, 1.0, demand.bytes, ns / 1e6, None, None))
    return replace(measured(floor, 80.0), matrices=tuple(reads))


def _exchanges(floor) -> tuple[Exchange, ...]:
    """Each phase's collectives at the truth: 7 rounds, all transfers alike."""
    found = []
    counts = {"verify": (129, 1, 40_960), "draft": (6, 2, 10_240), "draft_extend": (3, 1, 40_960)}
    for phase, (reduces, gathers, size) in counts.items():
        logits = size // 10_240 * 248_320 * 2
        for name, count, message, cost in (
            ("all_reduce", reduces, size, REDUCE), ("all_gather", gathers, logits, GATHER),
        ):  # fmt: skip
            ns = round(cost.time_ns(message))
            found.append(
                Exchange(phase, name, "nccl", count, count * ns / 1e6, 0.0, True, (ns,) * count * 7)
            )
    return tuple(found)


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    """The worked example's model, fitted from the defaults to a capture of another truth."""
    true = _true_round()
    return calibrate((_captured(true),), predicted(), _exchanges(true), MANIFEST)


def test_weight_reads_give_back_fraction_and_latency(calibration):
    """Large and small matrices together tell bandwidth from start-up."""
    line = calibration.profile.gemm
    assert float(line.fraction) == pytest.approx(0.88, rel=1e-4)
    assert line.latency_ns == pytest.approx(5_000, abs=10)
    assert calibration.profile.unpacking is None


def test_caches_and_states_give_back_theirs(calibration):
    """Attention is nearly all latency, recurrent states nearly all bytes."""
    line = calibration.profile.stream
    assert float(line.fraction) == pytest.approx(0.6, rel=0.01)
    assert line.latency_ns == pytest.approx(7_000, rel=0.01)


def test_collectives_give_back_alpha_and_beta(calibration):
    """Two message sizes, draft and verify, separate them; waiting plays no part."""
    costs = {c.operation: c.cost for c in calibration.profile.collectives}
    assert float(costs["all_reduce"].alpha_ns) == pytest.approx(17_000, abs=2)
    assert float(costs["all_reduce"].beta_ns_per_byte) == pytest.approx(0.06, rel=1e-3)
    assert float(costs["all_gather"].beta_ns_per_byte) == pytest.approx(0.07, rel=1e-3)
    assert [fit.sizes for fit in calibration.collectives] == [2, 2]


def test_small_kernels_give_back_their_latency(calibration):
    """Time of the small kernels over their number."""
    assert calibration.profile.node_latency_ns == pytest.approx(1_700, abs=1)


def test_the_profile_predicts_the_capture_that_it_was_fitted_on(calibration):
    """Expected with the profile is the truth's; idle time stays residual."""
    true = _true_round()
    assert with_profile(predicted(), calibration.profile).expected_ms == pytest.approx(
        true.expected_ms, rel=1e-3
    )
    assert calibration.after.expected_ms == pytest.approx(true.expected_ms, rel=1e-3)
    assert calibration.after.residual_ms == pytest.approx(80 - true.expected_ms, abs=0.05)


def test_the_profile_predicts_another_round(calibration):
    """Four draft steps at batch 2 were never seen: as the truth has them all the same."""
    floor = predicted(draft_steps=4, batch=2)
    true = predict(
        floor.model, floor.gpu, floor.workload, floor.switches, TRUTH, LinkCosts(REDUCE, GATHER)
    )
    found = with_profile(floor, calibration.profile)
    assert found.expected_ms == pytest.approx(true.expected_ms, rel=2e-3)


def test_every_point_is_shown_with_its_left_out_error(calibration):
    """Exact data leaves no residual, and no error where a matrix was left out."""
    weights = next(fit for fit in calibration.lines if fit.name == WEIGHTS)
    assert {point.sample.name for point in weights.points} >= {"lm_head", "gate_up", "in_proj_ba"}
    assert all(abs(point.residual_ns) < 25 for point in weights.points)
    assert weights.mean_left_out_error == pytest.approx(0, abs=2e-3)
    assert {fit.name for fit in calibration.lines} == {WEIGHTS, STREAMS}


def test_collectives_of_one_rank_are_not_fitted():
    """Waiting cannot be told from transfer, so the default stays, and it is said."""
    lonely = tuple(replace(e, paired=False, transfers_ns=()) for e in exchanges())
    found = calibrate((_captured(_true_round()),), predicted(), lonely, MANIFEST)
    assert found.profile.collectives == ()
    assert any("not every rank" in note for note in found.notes)


def test_one_message_size_is_all_alpha():
    """Without a second size nothing separates the two; beta is 0 and it is said."""
    verify = tuple(e for e in _exchanges(predicted()) if e.phase == "verify")
    found = calibrate((_captured(_true_round()),), predicted(), verify, MANIFEST)
    costs = {c.operation: c.cost for c in found.profile.collectives}
    assert costs["all_reduce"].beta_ns_per_byte == 0
    assert float(costs["all_reduce"].alpha_ns) == pytest.approx(17_000 + 0.06 * 40_960, abs=1)
    assert any("one message size" in note for note in found.notes)


def test_a_capture_that_tells_nothing_is_refused():
    """No matrices, no terms, no collectives: no profile."""
    empty = replace(measured(predicted()), terms=(), draft_parts=())
    with pytest.raises(EvidenceError, match="nothing to calibrate"):
        calibrate((empty,), predicted(), (), MANIFEST)


def test_a_read_faster_than_the_datasheet_is_left_out():
    """It was cached or is no read of that matrix: it must not pull the fit."""
    captured = _captured(_true_round())
    fast = replace(captured.matrices[0], mean_ms=1e-3)
    found = calibrate(
        (replace(captured, matrices=(fast, *captured.matrices[1:])),), predicted(), (), MANIFEST
    )
    assert float(found.profile.gemm.fraction) == pytest.approx(0.88, rel=1e-4)
    assert any("faster than the datasheet" in note for note in found.notes)


_SIZES = st.lists(st.integers(10**4, 10**10), min_size=2, max_size=8, unique=True)


def _samples(sizes, latency_ns, fraction):
    floors = [(size, size / PEAK_GBPS) for size in sizes]
    return [
        Sample(f"m{size}", "verify", size, floor, latency_ns + floor / fraction)
        for size, floor in floors
    ]


@settings(max_examples=60)
@given(sizes=_SIZES, latency_ns=st.integers(0, 50_000), fraction=st.floats(0.05, 1))
def test_a_line_is_recovered_from_its_points(sizes, latency_ns, fraction):
    """Whatever latency and fraction made them, the fit reproduces every point."""
    fit = fit_line("any", _samples(sizes, latency_ns, fraction))
    for point in fit.points:
        assert point.fitted_ns == pytest.approx(point.sample.measured_ns, rel=1e-3, abs=2)


@settings(max_examples=60)
@given(sizes=_SIZES, data=st.data())
def test_a_fit_is_possible_whatever_was_measured(sizes, data):
    """Noise never makes a latency negative or a fraction above 1."""
    times = data.draw(st.lists(st.floats(1, 1e9), min_size=len(sizes), max_size=len(sizes)))
    samples = [
        Sample(f"m{size}", "verify", size, size / PEAK_GBPS, ns)
        for size, ns in zip(sizes, times, strict=True)
    ]
    line = fit_line("any", samples).line
    assert line.latency_ns >= 0
    assert 0 < line.fraction <= 1


ORIGIN = Origin(
    'A "quoted" GPU', Fraction(768), "m", "sglang", 2, 3, 1, 240, 7, "0.1.0",
    (("capture.sqlite", "ab" * 32),),
)  # fmt: skip
PROFILE = Profile(
    ORIGIN, Line(5_000, Fraction(88, 100)), None, Line(7_000, Fraction(1)), 1_700,
    (ProfiledCollective("all_reduce", 2, REDUCE),),
)  # fmt: skip


def _written(tmp_path, text):
    path = tmp_path / "profile.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_profile_survives_its_file(tmp_path):
    """What was written is read back, provenance included."""
    found = read_profile(_written(tmp_path, dump_profile(PROFILE, ("a comment",))))
    assert (found.origin, found.gemm, found.unpacking) == (ORIGIN, PROFILE.gemm, None)
    assert (found.stream, found.node_latency_ns) == (PROFILE.stream, 1_700)
    assert found.collectives[0].cost.time_ns(40_960) == REDUCE.time_ns(40_960)


def test_collectives_hold_for_as_many_gpus_alone():
    """Fitted among two GPUs, they say nothing of four."""
    default = LinkCosts(GATHER, GATHER)
    assert PROFILE.links(default, 4) == default
    assert PROFILE.links(default, 2).all_reduce == REDUCE
    assert PROFILE.links(None, 1) is None
    assert "nothing of collectives among 4" in PROFILE.sentence(find_gpu("L4"), 4)


def test_what_was_not_fitted_keeps_its_default():
    """4-bit weights were in no matrix of the capture."""
    efficiency = PROFILE.efficiency(find_gpu("RTX A6000"))
    assert efficiency.gemm_unpacking == Fraction(80, 100)
    assert efficiency.weight_read_ns(Fraction(88_000), unpacks=False) == 105_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("roundline.profile/1", "roundline.profile/9"),
        ("fraction = 0.880000", "fraction = 1.2"),
        ("fraction = 0.880000", 'fraction = "fast"'),
        ("latency_us = 5.000", "latency_us = -5"),
        ("latency_us = 5.000", "latency_us = nan"),
        ("[gemm]", "[gemm"),
        ("tp = 2", ""),
    ],
)
def test_a_damaged_profile_is_one_sentence(tmp_path, old, new):
    """It names the file and never becomes a silent default."""
    text = dump_profile(PROFILE)
    assert old in text
    with pytest.raises(UsageError, match=r"profile\.toml"):
        read_profile(_written(tmp_path, text.replace(old, new, 1)))
