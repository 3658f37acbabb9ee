"""A hand-made model must add up and face the measured round time."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from roundline.bandwidth.stated import StatedModel, check_stated, read_ms
from roundline.errors import UsageError


def _case(shared):
    def find(node):
        if isinstance(node, dict):
            if "M04_worked_example" in node:
                return node["M04_worked_example"]
            node = list(node.values())
        items = [find(item) for item in node] if isinstance(node, list) else []
        return next((item for item in items if item), None)

    return find(json.loads((shared / "cases" / "EXPECTED.json").read_text()))


def test_the_hand_made_model_is_unexplained(shared):
    """41.83 ms of terms under a total of 42.4, and 13.0 ms of 55.4 that nobody explained."""
    case = _case(shared)
    given, out = case["in"], case["out"]
    hbm_gbps = Fraction(given["hbm_gbps"])
    weights_ms = read_ms(given["weight_gb_per_gpu"], hbm_gbps)
    assert weights_ms == pytest.approx(out["weights_ms"], abs=0.005)
    at_achievable = read_ms(given["weight_gb_per_gpu"], hbm_gbps, 0.913)
    assert at_achievable == pytest.approx(out["weights_ms_at_91.3_pct_of_peak"], abs=0.005)
    terms = [("weights", weights_ms)]
    terms += [(name, given[f"{name}_ms"]) for name in ("kv", "gdn", "allreduce", "draft")]
    model = StatedModel(tuple(terms), given["stated_total_ms"])
    found = check_stated(model, given["accept_len"], given["tok_s"])
    assert model.sum_ms == pytest.approx(out["sum_of_terms_ms"], abs=0.005)
    assert model.not_itemised_ms == pytest.approx(out["stated_total_not_itemised_ms"], abs=0.005)
    assert found.measured_ms == pytest.approx(out["measured_round_ms"], abs=0.05)
    assert found.unexplained_ms == pytest.approx(out["unexplained_vs_stated_total_ms"], abs=0.05)
    assert not found.agrees
    text = " ".join(found.findings())
    for number in ("41.83", "+0.57", "42.4", "55.4", "+13.0", "72.6", "2.36", "unexplained"):
        assert number in text


def test_a_model_that_agrees_says_its_residual_all_the_same():
    """Agreement in tok/s is never printed without both round times."""
    found = check_stated(StatedModel((("all", 53.0),)), 3.08, 55.59)
    assert found.agrees
    assert list(found.findings()) == [
        "model 53.0 ms, measured 55.4 ms, residual +2.4 ms (+4.3 % of the round)"
    ]


@pytest.mark.parametrize("model", [StatedModel(()), StatedModel((("weights", -1.0),), 5.0)])
def test_a_model_states_something(model):
    """No terms, no total, no check."""
    with pytest.raises(UsageError):
        check_stated(model, 3.08, 55.59)
