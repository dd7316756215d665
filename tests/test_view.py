"""The fold of a run's events: phase, progress, time left, curves; also over stops, crashes and resumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from spt.events import (
    DataLoaded,
    Event,
    LoraStep,
    MethodScored,
    ModelLoaded,
    Phase,
    PhaseStarted,
    Probe,
    Progress,
    Question,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    StepLoss,
)
from spt.metrics import MethodScores, Rate
from spt.spec import Method, RunSpec
from spt.view import RunView, duration, probed_levels
from tests.test_store import prediction, result

SPEC = RunSpec(steps=10, items=4)
SCORES = MethodScores.of([prediction("a")], closed=False)


def loaded(clock: float) -> Iterator[Event]:
    yield PhaseStarted(phase="load", time=clock)
    yield ModelLoaded(
        model="m", parameters=10, device="CPU", precision="fp32", chat_template=False, embedding_rms=0.1, seconds=2,
        time=clock + 2,
    )  # fmt: skip
    yield DataLoaded(benchmark="b", format="f", closed=False, train=9, test=4, items=4, time=clock + 2)


def answered(method: Method, clock: float, seconds: float) -> Iterator[Event]:
    """Four items at `seconds` each, two at a time."""
    yield PhaseStarted(phase=method, total=4, time=clock)
    for done in (2, 4):
        yield Progress(phase=method, done=done, total=4, time=clock + done * seconds)
    yield MethodScored(method=method, scores=SCORES, time=clock + 4 * seconds)


def step(number: int, clock: float, loss: float = 1.0) -> StepLoss:
    return StepLoss(step=number, loss=loss, learning_rate=0.1, grad_norm=1.0, seconds=1.0, time=clock)


def whole_run() -> list[Event]:
    """Load 2 s, items 1 s each, steps 3 s each with probes, 50 s in all."""
    rate = Rate(rate=0.5, low=0.1, high=0.9, n=2)
    events: list[Event] = [RunStarted(run="r", time=100.0), *loaded(100)]
    events += [*answered("zero_shot", 102, 1), *answered("few_shot", 106, 2)]
    events += [PhaseStarted(phase="tuning", total=10, time=114)]
    for number in range(1, 11):
        events.append(step(number, 114 + 3 * number, 1 / number))
        if number % 5 == 0:
            probe: dict[str, Any] = {"format": rate, "knowledge": rate, "exact_match": rate, "answers": ()}
            events.append(Probe(step=number, time=114 + 3 * number, **probe))
    events += answered("soft_prompt", 144, 1)
    return [*events, RunFinished(result=result(SPEC), time=148)]


def test_nothing_yet() -> None:
    view = RunView.of([], SPEC)
    assert (view.state, view.phase, view.fraction, view.seconds_left) == ("new", None, 0, None)
    assert view.headline == "Not started"


def test_a_whole_run() -> None:
    view = RunView.of(whole_run(), SPEC)
    assert (view.state, view.fraction, view.seconds_left, view.headline) == ("finished", 1.0, 0.0, "Finished")
    assert list(view.losses) == list(range(1, 11)) and list(view.probes) == [5, 10]
    assert set(view.scores) == {"zero_shot", "few_shot", "soft_prompt"}
    assert view.result == result(SPEC)
    assert view.phase_seconds == {"load": 2, "zero_shot": 4, "few_shot": 8, "tuning": 30, "soft_prompt": 4}


def test_in_pieces_it_is_the_same_and_progress_never_goes_back() -> None:
    events = whole_run()
    view = RunView(SPEC)
    before = 0.0
    for event in events:
        view.update([event])
        assert before <= view.fraction <= 1.0
        before = view.fraction
    assert view == RunView.of(events, SPEC)


def test_time_left_is_unknown_until_it_was_measured_and_then_right() -> None:
    events = whole_run()
    end = events[-1].time
    view = RunView(SPEC)
    for event in events[:-1]:
        view.update([event])
        if not view.losses:
            assert view.seconds_left is None  # the pace of tuning is not known
        else:
            assert view.seconds_left == pytest.approx(end - event.time)


def test_a_run_with_further_arms_has_one_more_phase() -> None:
    spec = SPEC.model_copy(update={"seeds": 2, "control": ("shuffled",)})
    events = whole_run()[:-1]
    view = RunView.of(events, spec)
    assert view.fraction < 0.9, "the controls are still to come"
    assert view.seconds_left == pytest.approx(8 * 1.0), "two arms of four items, at the pace of zero-shot"
    for done, name in ((4, "seed-1"), (8, "shuffled")):
        view.update([Progress(phase="controls", done=done, total=8, time=200 + done)])
        view.update([MethodScored(method=name, scores=SCORES, time=200 + done)])
    assert not view._paces["controls"].complete
    view.update([MethodScored(method="tuned_items", scores=SCORES, time=210)])
    assert view.fraction == pytest.approx(1.0) and view.seconds_left == 0.0


def test_a_run_with_lora_has_two_more_phases() -> None:
    spec = SPEC.model_copy(update={"seeds": 2, "method": ("lora",)})
    view = RunView.of(whole_run()[:-1], spec)
    view.update([MethodScored(method="seed-1", scores=SCORES, time=148)])
    before = view.fraction
    assert before < 0.8
    view.update([MethodScored(method="tuned_items", scores=SCORES, time=148)])
    assert view.fraction > before and view.seconds_left == pytest.approx(10 * 3 / 2 + 4), "half of a step of two arms"
    view.update([PhaseStarted(phase="lora_tuning", total=10, time=150)])
    for number in range(1, 6):
        told = {"learning_rate": 1e-3, "grad_norm": 1.0, "seconds": 2.0}
        view.update([LoraStep(step=number, loss=1 / number, time=150 + 4 * number, **told)])
    assert view.headline == "Tuning LoRA: 5 of 10" and list(view.lora_losses) == [1, 2, 3, 4, 5]
    assert view.phase_seconds_left == pytest.approx(5 * 4)
    assert len(view.losses) == 10, "the curve of the prompt is its own"
    view.update(answered("lora", 190, 1))
    assert view.phase == "lora" and view.scores["lora"] == SCORES


def test_time_left_of_the_phase() -> None:
    view = RunView.of([RunStarted(run="r", time=0), *loaded(0)], SPEC)
    assert view.phase_seconds_left is None
    zero_shot = list(answered("zero_shot", 2, 1.5))
    view.update(zero_shot[:1])
    assert view.phase_seconds_left is None and view.headline == "Zero-shot answers: 0 of 4"
    view.update(zero_shot[1:2])
    assert (view.phase_seconds_left, view.phase_fraction, view.phase_done, view.phase_total) == (3.0, 0.5, 2, 4)


@pytest.mark.parametrize("stopped", [True, False], ids=["stopped", "killed"])
def test_a_pause_of_a_day_does_not_count(stopped: bool) -> None:
    events = whole_run()
    cut = next(i for i, event in enumerate(events) if isinstance(event, StepLoss) and event.step == 4)
    first = events[: cut + 1]
    day = 86_400.0
    view = RunView.of([*first, *([RunStopped(time=first[-1].time)] if stopped else [])], SPEC)
    assert view.state == ("stopped" if stopped else "running")
    fraction = view.fraction

    resumed: list[Event] = [RunStarted(run="r", resumed=True, time=day), *loaded(day)]
    for method in ("zero_shot", "few_shot"):  # stored already: over at once
        resumed += answered(method, day + 2, 0)
    # Killed after the fourth loss and before its checkpoint: the fourth step comes again.
    resumed += [PhaseStarted(phase="tuning", total=10, time=day + 2), step(4, day + 5, 0.25), step(5, day + 8, 0.2)]
    for event in resumed:
        view.update([event])
        assert view.fraction >= fraction
    assert view.state == "running" and view.resumed
    assert [event.step for event in view.losses.values()] == [1, 2, 3, 4, 5]
    assert view.phase_seconds["tuning"] == 4 * 3 + 2 * 3
    # 18 seconds for 5 steps, the repeated one included; then four items at one second each.
    assert view.seconds_left == pytest.approx(5 * 18 / 5 + 4)


def test_a_run_made_anew_forgets_the_old_one() -> None:
    view = RunView.of(whole_run(), SPEC)
    view.update([RunStarted(run="r", time=500)])
    assert view == RunView.of([RunStarted(run="r", time=500)], SPEC)
    assert (view.state, view.started, view.losses, view.result) == ("running", 500, {}, None)


def test_failures_and_stops_say_so() -> None:
    view = RunView.of([RunStarted(run="r"), RunFailed(message="No memory.", detail="Traceback")], SPEC)
    assert (view.state, view.headline) == ("failed", "No memory.")
    assert view.seconds_left is None
    view.update([RunStarted(run="r", resumed=True)])
    assert (view.state, view.message) == ("running", "")
    view.update([RunStopped()])
    assert (view.state, view.headline) == ("stopped", "Stopped; it can be resumed")


def test_a_clock_that_is_set_back_does_no_harm() -> None:
    phase: Phase = "zero_shot"
    view = RunView.of(
        [
            RunStarted(run="r", time=1000),
            PhaseStarted(phase=phase, total=4, time=1000),
            Progress(phase=phase, done=2, total=4, time=10),
        ],
        SPEC,
    )
    assert view.phase_seconds == {} and view.phase_seconds_left is None and view.phase_fraction == 0.5


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "unknown"), (-3, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s"), (4330, "1 h 12 min")],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


def test_levels_beside_the_curves_are_those_of_the_probed_items() -> None:
    questions = tuple(Question(id=name, question="q", target="t") for name in ("a", "b"))
    data = DataLoaded(
        benchmark="b", format="f", closed=False, train=9, test=4, items=4, probed=questions, time=0
    )  # fmt: skip
    rows = [prediction(name) for name in ("a", "c", "d")]
    assert probed_levels({"zero_shot": rows}, data) == {}, "not all of them are answered yet"
    levels = probed_levels({"zero_shot": [*rows, prediction("b")], "soft_prompt": rows}, data)
    assert list(levels) == ["zero_shot"] and levels["zero_shot"].exact_match.n == 2
    assert probed_levels({}, None) == {}
