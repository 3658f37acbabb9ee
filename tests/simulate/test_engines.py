"""Each engine runs its rounds in its own order, whatever it drafts with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roundline.errors import UnknownNameError, UsageError
from roundline.simulate.engines.registry import ENGINES
from roundline.simulate.session import SimulateOptions, simulate
from roundline.simulate.timeline import Activity
from roundline.simulate.truth import CaptureTruth, truth_of

DRAFTS_FIRST = {"sglang-mtp", "sglang-v1", "sglang-adaptive", "sglang-standalone", "sglang-block",
                "llama.cpp"}  # fmt: skip
WITH_DRAFT_MODEL = {"sglang-standalone", "sglang-block", "trtllm-two", "llama.cpp"}


def server(engine: str) -> SimulateOptions:
    """A small server of each engine, with a draft model where it takes one."""
    options = SimulateOptions(engine=engine, rounds=2, tp=1, gpu="h100", model="qwen3.5-4b")
    if engine in WITH_DRAFT_MODEL:
        return replace(options, model="llama-3.1-8b", draft_model="llama-3.2-1b")
    return options


@pytest.fixture(scope="module", params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine's name."""
    return str(request.param)


@pytest.fixture(scope="module")
def truth(engine: str) -> CaptureTruth:
    """Truth of a small server of that engine."""
    return truth_of(simulate(server(engine)))


def first_of(truth: CaptureTruth, round_id: int) -> Activity:
    """The anchor of a round."""
    return next(i.activity for i in truth.activities if i.round_id == round_id)


def test_as_many_rounds_as_asked_for(truth: CaptureTruth) -> None:
    """Two complete rounds, whose parts add up to their wall time."""
    assert [r.round_id for r in truth.rounds] == [0, 1]
    for item in truth.rounds:
        busy_ns = sum(w.exclusive_ns for w in item.work)
        assert busy_ns + sum(i.idle_ns for i in item.idle) == item.wall_ns


def test_a_round_starts_with_its_anchor(engine: str, truth: CaptureTruth) -> None:
    """The first draft where the engine drafts first, else the target."""
    anchor = first_of(truth, 0)
    assert anchor.truth.phase == ("draft" if engine in DRAFTS_FIRST else "verify")
    assert anchor.truth.category in ("embedding", "norm")


def test_draft_steps_run_in_order(engine: str, truth: CaptureTruth) -> None:
    """Steps 1 to K once each, the extending pass as the last."""
    drafts = {"plain-graph": 0, "plain-eager": 0, "sglang-ngram": 0, "sglang-block": 1}
    steps = [
        i.activity.truth.draft_step
        for i in truth.activities
        if i.round_id == 0 and i.activity.truth.draft_step is not None
    ]
    order = [step for step, before in zip(steps, [None, *steps], strict=False) if step != before]
    if engine != "sglang-adaptive":
        assert order == list(range(1, drafts.get(engine, 3) + 1))


def test_the_target_runs_once_with_all_its_layers(engine: str, truth: CaptureTruth) -> None:
    """Every layer of the target and one head, in phase verify."""
    verify = [
        i.activity.truth for i in truth.activities
        if i.round_id == 0 and i.activity.truth.phase == "verify"
    ]  # fmt: skip
    layers = sorted({t.layer for t in verify if t.layer is not None})
    assert layers == list(range(32))
    assert "lm_head" in {t.matrix for t in verify}


def test_unknown_engines_are_refused_by_name() -> None:
    """The message lists what there is."""
    with pytest.raises(UnknownNameError, match="did you mean vllm"):
        simulate(SimulateOptions(engine="vlm"))


def test_drafting_needs_something_to_draft_with() -> None:
    """A target without an MTP layer and no draft model cannot speculate."""
    with pytest.raises(UsageError, match="has none"):
        simulate(SimulateOptions(model="qwen3-8b"))


def test_adaptive_steps_change_round_and_graphs() -> None:
    """Rounds with one more draft step replay other graphs."""
    truth = truth_of(simulate(SimulateOptions(engine="sglang-adaptive", rounds=6, tp=1)))
    most = [max(w.draft_step or 0 for w in r.work) for r in truth.rounds]
    assert set(most) == {3, 4}
