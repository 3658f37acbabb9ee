"""What acceptance means and what speculation is worth."""

from __future__ import annotations

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundline.bandwidth import speculation
from roundline.errors import UsageError


@pytest.mark.parametrize(
    ("engine", "version", "name"),
    [
        ("sglang", "0.5.2", None),
        ("sglang", "0.5.4", "emitted_per_verified"),
        ("SGLang", "v0.5.10.post1", "emitted_per_verified"),
        ("sglang", "0.5.11", "accepted_per_draft"),
        ("sglang", None, "accepted_per_draft"),
        ("vllm", "0.11", "accepted_per_draft"),
        ("llama.cpp", None, "accepted_per_draft"),
        ("TensorRT-LLM", None, None),
    ],
)
def test_the_rate_of_an_engine(engine, version, name):
    """The definition changed with SGLang 0.5.11; some versions print none."""
    found = speculation.rate_definition(engine, version)
    assert (found.name if found else None) == name


def test_old_vllm_lengths_exclude_the_bonus():
    """From 0.9 on every engine counts it."""
    assert not speculation.length_includes_bonus("vllm", "0.8.5")
    assert speculation.length_includes_bonus("vllm", "0.9.0")
    assert speculation.length_includes_bonus("sglang", "0.4.6")


def test_an_unreadable_version_is_refused():
    """A version is digits."""
    with pytest.raises(UsageError, match="version"):
        speculation.rate_definition("sglang", "main")


def test_the_case_of_the_printed_pair(shared):
    """3.08 and 0.69 of three steps: the bonus counts, the most is 4, the rate implies 3.07."""
    case = json.loads((shared / "cases" / "EXPECTED.json").read_text())
    given_, out = _find(case, "M01_accept_defs")["in"], _find(case, "M01_accept_defs")["out"]
    found = speculation.check_acceptance(
        given_["steps"], given_["accept_len"], given_["accept_rate"]
    )
    assert found.includes_bonus is out["includes_bonus"]
    assert found.max_len == out["max_len"]
    assert found.implied_len_from_rate == pytest.approx(out["implied_len_from_rate"])
    assert found.definition is speculation.PER_DRAFT
    assert found.findings == ()


def _find(node, key):
    if isinstance(node, dict):
        if key in node:
            return node[key]
        node = list(node.values())
    found = [_find(item, key) for item in node] if isinstance(node, list) else []
    return next((item for item in found if item), None)


def test_a_length_without_the_bonus_is_flagged():
    """2.08 with rate 0.69 counts accepted drafts alone."""
    found = speculation.check_acceptance(3, 2.08, 0.69)
    assert not found.includes_bonus
    assert found.accept_len == pytest.approx(3.08)
    assert "excludes the bonus token" in found.findings[0]


def test_the_older_rate_is_told_from_the_numbers():
    """0.77 of 3.08 counts the bonus in length and rate."""
    found = speculation.check_acceptance(3, 3.08, 0.77)
    assert found.definition is speculation.PER_VERIFIED
    assert found.draft_rate == pytest.approx(0.693, abs=0.001)


def test_numbers_that_fit_nothing_are_said():
    """A rate that no definition yields is reported, not used."""
    found = speculation.check_acceptance(3, 3.08, 0.30)
    assert found.definition is None
    assert "no known definition" in found.findings[0]


def test_an_ambiguous_rate_is_said():
    """Everything accepted is 1.0 by every definition."""
    assert "more than one" in speculation.check_acceptance(3, 4.0, 1.0).findings[0]


def test_a_tree_has_its_own_denominator():
    """The rate counts drafted nodes, the length is bounded by the depth."""
    found = speculation.check_acceptance(3, 2.4, 0.20, num_draft_tokens=8)
    assert found.definition is speculation.PER_DRAFT
    assert found.max_len == 4


@pytest.mark.parametrize(
    ("steps", "length", "rate"),
    [
        (3, 4.2, None),
        (3, 3.08, 1.2),
        (3, 3.08, -0.1),
        (3, -1.0, None),
        (3, float("nan"), None),
        (-1, 1.0, None),
        (0, 1.5, None),
        (0, 1.0, 0.5),
    ],
)
def test_impossible_acceptance_is_refused(steps, length, rate):
    """A length above K + 1, a rate outside 0 to 1, drafts that were never made."""
    with pytest.raises(UsageError):
        speculation.check_acceptance(steps, length, rate)


def test_a_length_that_would_need_more_than_k_drafts_is_refused():
    """3.8 accepted drafts of 3 are impossible, so the length cannot exclude the bonus."""
    with pytest.raises(UsageError, match="outside 1 to 4"):
        speculation.check_acceptance(3, 3.8, includes_bonus=False)


@given(st.integers(1, 8), st.floats(0, 1))
def test_length_and_rate_of_one_definition_agree(steps, share):
    """What an engine prints is recognised as what it is."""
    length = 1 + steps * share
    for definition in speculation.DEFINITIONS:
        rate = definition.rate_of(length, steps)
        assert definition.length_of(rate, steps) == pytest.approx(length)
        found = speculation.check_acceptance(steps, length, rate)
        assert found.includes_bonus
        assert found.accept_len == length


def test_identities_of_printed_log_lines(shared):
    """vLLM's and llama.cpp's own lines follow from their parts."""
    with (shared / "model" / "identities.csv").open(encoding="utf-8", newline="") as file:
        assert {row["id"] for row in csv.DictReader(file)} >= {"vllm-3pos", "llamacpp-3pos"}
    vllm = speculation.length_from_positions([0.963, 0.804, 0.640])
    assert vllm == pytest.approx(3.407, abs=0.0005)
    assert (vllm - 1) / 3 == pytest.approx(0.802, abs=0.0005)
    assert speculation.length_from_positions([0.805, 0.632, 0.483]) == pytest.approx(2.92)
    assert speculation.length_from_counts(167, 87) == pytest.approx(2.92, abs=0.005)
    assert speculation.rate_from_counts(167, 259) == pytest.approx(0.645, abs=0.0005)


def test_conditional_rates_multiply():
    """c_2 = a_1 x a_2."""
    assert speculation.length_from_positions([0.9, 0.5], conditional=True) == pytest.approx(2.35)


@pytest.mark.parametrize("rates", [[0.5, 0.9], [1.1], [-0.1]])
def test_positions_that_cannot_be_are_refused(rates):
    """Unconditional rates never rise; every rate is a share."""
    with pytest.raises(UsageError, match="per-position"):
        speculation.length_from_positions(rates)


@pytest.mark.parametrize("counts", [(5, 0), (-1, 3)])
def test_counts_without_rounds_are_refused(counts):
    """No length follows from nothing."""
    with pytest.raises(UsageError):
        speculation.length_from_counts(*counts)


def test_more_accepted_than_drafted_is_refused():
    """A rate above 1 is no rate."""
    with pytest.raises(UsageError):
        speculation.rate_from_counts(10, 9)


def test_constant_acceptance_of_the_worked_example():
    """3.08 of three steps is a = 0.828, not the draft rate of 0.693."""
    assert speculation.constant_from_length(3.08, 3) == pytest.approx(0.828, abs=0.0005)


@given(st.integers(1, 8), st.floats(0.01, 0.99))
def test_constant_acceptance_inverts(steps, rate):
    """Length and constant rate determine each other."""
    length = speculation.length_from_constant(rate, steps)
    assert speculation.constant_from_length(length, steps) == pytest.approx(rate, abs=1e-6)


def test_round_time_and_throughput_of_the_worked_example():
    """55.59 tok/s at 3.08 are 55.4 ms; 42.4 ms are 72.6 tok/s, and 2.36 would join the two."""
    assert speculation.round_ms(3.08, 55.59) == pytest.approx(55.4, abs=0.05)
    assert speculation.tokens_per_s(3.08, 42.4) == pytest.approx(72.6, abs=0.05)
    assert speculation.implied_accept_len(42.4, 55.59) == pytest.approx(2.36, abs=0.005)


@given(st.floats(1, 9), st.floats(0.01, 1e4), st.integers(1, 256))
def test_units_round_trip(length, round_ms, requests):
    """Round time -> tok/s -> round time is the identity."""
    rate = speculation.tokens_per_s(length, round_ms, requests)
    assert speculation.round_ms(length, rate, requests) == pytest.approx(round_ms)
    assert speculation.implied_accept_len(round_ms, rate, requests) == pytest.approx(length)


def test_no_time_and_no_throughput_are_refused():
    """Division by zero is a message."""
    with pytest.raises(UsageError):
        speculation.round_ms(3.0, 0)
    with pytest.raises(UsageError):
        speculation.tokens_per_s(3.0, 0)


def test_when_speculation_pays():
    """Break-even at T_K / T_1; a fourth step is worth 15 % tokens for 4.6 % time."""
    assert speculation.break_even_len(47.3, 55.4) == pytest.approx(1.17, abs=0.005)
    fourth = speculation.marginal_step(3.08, 0.828**4, 2.53, 55.4)
    assert fourth.gain == pytest.approx(0.153, abs=0.001)
    assert fourth.cost == pytest.approx(0.046, abs=0.001)
    assert fourth.pays
    assert not speculation.marginal_step(3.08, 0.1, 2.53, 55.4).pays


def test_throughput_over_draft_steps_of_the_worked_example():
    """36.3 to 69.7 tok/s for 1 to 8 steps of constant acceptance."""
    rate = speculation.constant_from_length(3.08, 3)
    plain_ms, step_ms = 55.4 - 3 * 2.53, 2.53
    found = [
        speculation.tokens_per_s(speculation.length_from_constant(rate, k), plain_ms + k * step_ms)
        for k in range(1, 9)
    ]
    assert found == pytest.approx([36.3, 47.5, 55.6, 61.3, 65.1, 67.6, 69.1, 69.7], abs=0.1)


def test_leviathan():
    """E / (K c + 1) with a free draft is E."""
    assert speculation.leviathan_speedup(3.08, 3, 0.0) == 3.08
    assert speculation.leviathan_speedup(3.08, 3, 0.1) == pytest.approx(3.08 / 1.3)


def test_a_bent_sweep_is_no_line():
    """A miss above 5 % warns against extrapolation."""
    assert not speculation.fit_rounds({0: 10.0, 1: 10.5, 2: 20.0}).is_linear


def test_a_line_needs_two_points():
    """One number of draft steps shows no slope."""
    with pytest.raises(UsageError):
        speculation.fit_rounds({3: 10.0})


def test_the_best_number_of_steps_prefers_fewer():
    """On a tie the cheaper one."""
    assert speculation.best_steps({4: 10.0, 2: 10.0, 3: 9.0}) == 2
