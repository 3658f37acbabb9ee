"""A what-if changes what is named, holds the rest, and says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worked_example import (
    ACCEPT_LEN,
    ROUND_MS,
    TOKENS_PER_S,
    exchanges,
    measured,
    predicted,
)

from roundline.bandwidth.hardware import find_gpu
from roundline.errors import UsageError
from roundline.reconcile.changes import Changes
from roundline.reconcile.exchanges import Exchange
from roundline.reconcile.measured import MeasuredTerm
from roundline.reconcile.what_if import WhatIf, what_if

FLOOR = predicted()
MEASURED = measured(FLOOR)


def _what_if(**changes: object) -> WhatIf:
    return what_if(MEASURED, FLOOR, Changes(**changes), exchanges(), ACCEPT_LEN)  # type: ignore


def _rate(**changes: object) -> float:
    rate = _what_if(**changes).after.tokens_per_s
    assert rate is not None
    return rate


def test_the_worked_example_is_the_measured_round():
    """55.4 ms and 55.59 tok/s, before any change."""
    found = _what_if()
    assert found.before_ms == pytest.approx(ROUND_MS, abs=1e-5)
    assert found.before.tokens_per_s == pytest.approx(TOKENS_PER_S)


@pytest.mark.parametrize(
    ("gpu", "tokens_per_s"),
    [
        ("NVIDIA RTX 6000 Ada Generation", 66),
        ("NVIDIA A100-SXM4-80GB", 114),
        ("NVIDIA H100 80GB HBM3", 151),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 105),
    ],
)
def test_other_gpus_change_the_memory_terms_alone(gpu, tokens_per_s):
    """The reference figures of the worked example: bytes at another bandwidth, the rest held."""
    assert _rate(gpu=find_gpu(gpu)) == pytest.approx(tokens_per_s, abs=0.55)


@pytest.mark.parametrize(
    ("changes", "tokens_per_s"),
    [
        ({"weight_format": "fp8"}, 93),
        ({"weight_format": "int4_g128", "head_format": "bf16", "draft_format": "bf16"}, 105),
        ({"all_reduce_ns": 5_000}, 57.7),
    ],
)
def test_software_changes_reach_the_reference_figures(changes, tokens_per_s):
    """8-bit weights, a 4-bit body, and all-reduces of 5 instead of 20 us."""
    assert _rate(**changes) == pytest.approx(tokens_per_s, rel=0.006)


@pytest.mark.parametrize(
    ("steps", "tokens_per_s"),
    [(1, 36.3), (2, 47.5), (4, 61.3), (5, 65.1), (6, 67.6), (7, 69.1), (8, 69.7)],
)
def test_other_draft_steps_at_a_constant_rate(steps, tokens_per_s):
    """Constant a = 0.828: the reference curve over K, whose state passes stay as they are."""
    floor = replace(FLOOR, switches=replace(FLOOR.switches, state_passes=7))
    found = what_if(MEASURED, floor, Changes(draft_steps=steps), exchanges(), ACCEPT_LEN)
    assert found.after.tokens_per_s == pytest.approx(tokens_per_s, rel=0.006)
    assert "0.828" in found.after.accept_basis


def test_a_constant_rate_is_a_bound_and_says_which():
    """Real rates fall with the position: above for more steps, below for fewer."""
    assert "upper bound" in _what_if(draft_steps=4).after.accept_basis
    assert "lower bound" in _what_if(draft_steps=2).after.accept_basis


def test_plain_decode_is_the_reference_step():
    """T_1 is about 47.3 ms: no drafts, and two passes over the state instead of seven."""
    found = _what_if(draft_steps=0)
    assert found.after_ms == pytest.approx(47.3, abs=0.25)
    assert found.after.accept_len == 1
    assert {line.term: line.basis for line in found.lines}["draft"] == "gone"


def test_a_smaller_draft_head_saves_its_bytes():
    """32,000 of 248,320 rows in each of three passes: 4.3 ms at peak, more at 90 %."""
    found = _what_if(draft_vocab=32_000)
    saved = found.before_ms - found.after_ms
    assert 0.9 * saved == pytest.approx(4.3, abs=0.05)
    assert [line.term for line in found.lines if line.after_ms != line.before_ms] == ["draft"]


def test_nothing_changes_nothing_exactly():
    """No change, and every change to what is already there, is the measured round to the bit."""
    same = {"tp": 2, "draft_steps": 3, "context": 240, "batch": 1, "gpu": FLOOR.gpu}
    for changes in ({}, same):
        found = _what_if(**changes)
        for line in found.lines:
            assert line.after_ms == line.before_ms == line.at_best_ms
        assert found.after_ms == found.before_ms == found.at_best_ms
        assert found.after.tokens_per_s == found.before.tokens_per_s


_MS = st.floats(0, 100, allow_nan=False)
_TERMS = ("weights", "attention", "gdn", "collective", "sampling", "elementwise", "copy", "idle")
_CHANGES = st.builds(
    Changes,
    gpu=st.sampled_from([None, find_gpu("H100 SXM"), find_gpu("L4")]),
    tp=st.sampled_from([None, 1, 2, 4]),
    draft_steps=st.sampled_from([None, 0, 1, 3, 5]),
    batch=st.sampled_from([None, 1, 7]),
    context=st.sampled_from([None, 0, 100_000]),
)


@settings(max_examples=30)
@given(times=st.tuples(*[_MS] * len(_TERMS)), changes=_CHANGES)
def test_what_the_model_does_not_predict_is_held(times, changes):
    """Whatever was measured and whatever changes, T_rest stays and the bounds are in order."""
    terms = tuple(MeasuredTerm(t, ms) for t, ms in zip(_TERMS, times, strict=True))
    found = what_if(replace(MEASURED, terms=terms, draft_parts=()), FLOOR, changes)
    held = {line.term: line for line in found.lines if line.basis == "held"}
    assert set(held) == {"sampling", "copy", "unclassified", "other", "idle"}
    assert all(line.after_ms == line.before_ms == line.at_best_ms for line in held.values())
    assert found.at_best_ms <= found.after_ms * (1 + 1e-12)
    assert all(line.after_ms >= 0 for line in found.lines)


@settings(max_examples=30)
@given(times=st.tuples(*[_MS] * len(_TERMS)))
def test_nothing_changes_nothing_whatever_was_measured(times):
    """Exactly, for any measured round."""
    terms = tuple(MeasuredTerm(t, ms) for t, ms in zip(_TERMS, times, strict=True))
    found = what_if(replace(MEASURED, terms=terms), FLOOR, Changes(), exchanges())
    assert found.after_ms == found.before_ms


@settings(max_examples=20)
@given(gbps=st.integers(100, 10_000), more=st.integers(1, 5_000))
def test_more_bandwidth_never_lengthens_a_round(gbps, more):
    """Monotone in bandwidth, and never below the floor plus what is held."""
    slow = _what_if(gpu=FLOOR.gpu.with_bandwidth(gbps))
    fast = _what_if(gpu=FLOOR.gpu.with_bandwidth(gbps + more))
    assert fast.after_ms <= slow.after_ms
    assert slow.at_best_ms >= slow.floor_after_ms - 1e-9


def test_at_best_changed_memory_terms_reach_their_floor():
    """The lower bound of a faster GPU is its floor plus all that does not change."""
    found = _what_if(gpu=find_gpu("H100 SXM"))
    lines = {line.term: line for line in found.lines}
    assert lines["weights"].at_best_ms == pytest.approx(25.625 / 3.350, rel=1e-3)
    assert lines["collective"].at_best_ms == lines["collective"].before_ms


def test_waiting_for_the_other_rank_is_not_transfer():
    """Half of the collectives' time is waiting: faster all-reduces leave it."""
    waiting = (Exchange("verify", "all_reduce", "nccl", 129, 1.29, 1.29),)
    found = what_if(MEASURED, FLOOR, Changes(all_reduce_ns=0), waiting, ACCEPT_LEN)
    collective = next(line for line in found.lines if line.term == "collective")
    assert collective.after_ms == pytest.approx(collective.before_ms / 2)


def test_idle_time_changes_only_when_it_is_named():
    """Held under every other change; named, it replaces what was measured and nothing else."""
    found = _what_if(idle_ms=1.0)
    lines = {line.term: line for line in found.lines}
    assert (lines["idle"].after_ms, lines["idle"].basis) == (1.0, "given")
    saved = found.before_ms - found.after_ms
    assert saved == pytest.approx(MEASURED.term_ms("idle") - 1.0)
    assert found.changes == ("idle: 1 ms a round",)


def test_missing_evidence_is_passed_on():
    """A round that is not accounted for makes a weaker what-if, and it says so."""
    found = what_if(MEASURED, FLOOR, Changes(), missing_evidence=("records were dropped",))
    assert any("records were dropped" in text for text in found.assumptions)


def test_one_gpu_has_no_collectives():
    """TP 2 -> 1: collectives go, the weights double, and what does not fit is said."""
    found = _what_if(tp=1)
    lines = {line.term: line for line in found.lines}
    assert lines["collective"].after_ms == 0
    assert lines["weights"].after_ms == pytest.approx(2 * lines["weights"].before_ms, rel=1e-3)
    assert any("does not fit" in text for text in found.assumptions)


def test_terms_that_were_never_measured_come_from_the_model():
    """Plain decode on one GPU -> drafts on two: new terms, and no rate without a length."""
    floor = predicted(tp=1, draft_steps=0)
    found = what_if(measured(floor, 80.0), floor, Changes(tp=2, draft_steps=3), (), 1.0)
    bases = {line.term: line.basis for line in found.lines}
    assert (bases["collective"], bases["draft"]) == ("new", "new")
    assert found.after.tokens_per_s is None
    assert "--to-accept-len" in found.after.accept_basis
    given_len = what_if(measured(floor, 80.0), floor, Changes(draft_steps=3), (), 1.0, 3.08)
    assert given_len.after.tokens_per_s == pytest.approx(3080 / given_len.after_ms)


def test_what_is_held_is_said():
    """The sentence names the terms and their share of the round."""
    (first, *_) = _what_if(gpu=find_gpu("L4")).held
    assert "held constant" in first
    assert "idle" in first


@pytest.mark.parametrize(
    "changes", [{"tp": 3}, {"weight_format": "q9"}, {"draft_steps": -1}, {"batch": 0}]
)
def test_an_impossible_change_is_refused(changes):
    """The model refuses it, as it would in `predict`."""
    with pytest.raises(UsageError):
        _what_if(**changes)
