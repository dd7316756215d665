"""The order of work, what is refused before it starts, and the claim itself on the real bundled model."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spt import experiment
from spt.evaluation import EVAL_BATCH
from spt.events import (
    Checkpoint,
    DataLoaded,
    Message,
    MethodScored,
    ModelLoaded,
    PhaseStarted,
    Predictions,
    Probe,
    PromptFiles,
    ResumeState,
    RunFinished,
    StepLoss,
)
from spt.experiment import ModelCache
from spt.models import LoadedModel
from spt.prompt import SoftPrompt
from spt.spec import METHODS, RunSpec, UserError
from tests.runs import small_spec

Tiny = Callable[[str], Path]


def messages(spec: RunSpec, cache: ModelCache | None = None) -> list[Message]:
    return list(experiment.run(spec, ResumeState(), cache or ModelCache()))


def of(kind: type, found: list[Message]) -> list:
    return [message for message in found if isinstance(message, kind)]


@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_a_run_from_its_first_event_to_its_last(benchmark: str, tiny: Tiny, tmp_path: Path) -> None:
    spec = small_spec(tiny("llama"), benchmark=benchmark)
    found = messages(spec)
    assert [p.phase for p in of(PhaseStarted, found)] == ["load", "zero_shot", "few_shot", "tuning", "soft_prompt"]
    assert [s.method for s in of(MethodScored, found)] == list(METHODS)
    assert [s.step for s in of(StepLoss, found)] == [1, 2, 3, 4, 5]
    assert [p.step for p in of(Probe, found)] == [0, 2, 4, 5]
    result = found[-1].result  # type: ignore[union-attr]
    assert isinstance(found[-1], RunFinished) and result.run == spec.run_id
    assert result.tuning.trainable_parameters == spec.virtual_tokens * 32
    assert result.tuning.final_loss == of(StepLoss, found)[-1].loss
    assert set(result.seconds) == {"load", "zero_shot", "few_shot", "tuning", "soft_prompt"}

    (data,) = of(DataLoaded, found)
    probed = [question.id for question in data.probed]
    assert [[a.id for a in p.answers] for p in of(Probe, found)] == [probed] * 4
    by_method = {m: [row for b in of(Predictions, found) if b.method == m for row in b.rows] for m in METHODS}
    assert all(len({row.id for row in rows}) == spec.items for rows in by_method.values())
    assert all(len(batch.rows) <= EVAL_BATCH for batch in of(Predictions, found))

    (files,) = of(PromptFiles, found)
    for name, content in files.files.items():
        (tmp_path / name).write_bytes(content)
    assert SoftPrompt.load(tmp_path).vectors.shape == (3, 32)


@pytest.mark.parametrize("benchmark", ["capitals", "capitals-mc"])
def test_further_arms_are_tuned_probed_answered_and_kept(benchmark: str, tiny: Tiny, tmp_path: Path) -> None:
    spec = small_spec(tiny("llama"), benchmark=benchmark, seeds=2, control=("shuffled",), seed=3)
    found = messages(spec)
    names = ["soft_prompt", "seed-4", "shuffled"]
    assert [p.phase for p in of(PhaseStarted, found)][-1] == "controls"
    assert [s.method for s in of(MethodScored, found)] == [*METHODS, "seed-4", "shuffled", "tuned_items"]
    assert all(set(step.arms) == set(names[1:]) for step in of(StepLoss, found))
    further = {probe.step: set(probe.arms) for probe in of(Probe, found)}  # asked every second time and at the end
    every = spec.probe_every
    assert further == {
        step: set(names[1:]) if step % (2 * every) == 0 or step == spec.steps else set() for step in further
    }
    assert [files.arm for files in of(PromptFiles, found)] == names
    result = found[-1].result  # type: ignore[union-attr]
    assert list(result.methods) == list(spec.methods)
    (data,) = of(DataLoaded, found)
    assert data.tuned_items == result.methods["tuned_items"].format.n == 10, "five steps of two rows"

    real = messages(spec.model_copy(update={"seeds": 1, "control": ()}))
    alone, together = ([step.loss for step in of(StepLoss, m)] for m in (real, found))
    assert together == pytest.approx(alone, abs=1e-4), "the real prompt is what it is without the others"
    other = messages(spec.model_copy(update={"seeds": 1, "control": (), "seed": 4}))
    alone, together = [s.loss for s in of(StepLoss, other)], [s.arms["seed-4"] for s in of(StepLoss, found)]
    assert together == pytest.approx(alone, abs=1e-4), "and a further seed what it is as a run of its own"


def test_closed_knowledge_is_the_likeliest_option(tiny: Tiny) -> None:
    rows = [row for batch in of(Predictions, messages(small_spec(tiny("llama"), benchmark="capitals-mc")))
            for row in batch.rows]  # fmt: skip
    for row in rows:
        likeliest = max(zip(row.option_logprobs, row.options, strict=True))[1]
        assert row.knows == (likeliest == row.target)
    assert {row.knows for row in rows} == {True, False}


def test_the_model_is_kept_for_the_next_run_and_left_clean(tiny: Tiny) -> None:
    cache = ModelCache()
    spec = small_spec(tiny("llama"))
    first = messages(spec, cache)
    loaded = cache.loaded
    second = messages(spec, cache)
    assert cache.loaded is loaded
    assert [s.loss for s in of(StepLoss, first)] == [s.loss for s in of(StepLoss, second)]
    for early in (1, 3):
        run = experiment.run(spec, ResumeState(), cache)
        for _ in range(early * 5):
            next(run)
        run.close()
    assert cache.loaded is loaded and loaded is not None
    assert loaded.model.get_input_embeddings().vectors is None  # type: ignore[union-attr]


def test_the_chat_template_is_used_as_asked(tiny: Tiny) -> None:
    with pytest.raises(UserError, match="has no chat template"):
        messages(small_spec(tiny("llama"), chat_template="on"))
    (loaded,) = of(ModelLoaded, messages(small_spec(tiny("llama"), chat_template="auto")))
    assert not loaded.chat_template


def test_a_run_does_not_go_on_with_another_model(tiny: Tiny, tmp_path: Path) -> None:
    """The folder is replaced between two attempts: neither vectors nor answers of the first may be used."""
    folder = tmp_path / "model"
    shutil.copytree(tiny("llama"), folder)
    spec = small_spec(folder)
    first = [m for m in messages(spec) if not isinstance(m, Predictions | Checkpoint | PromptFiles)]
    shutil.rmtree(folder)
    shutil.copytree(tiny("qwen3"), folder)
    with pytest.raises(UserError, match="run it anew"):
        list(experiment.run(spec, ResumeState(events=tuple(first)), ModelCache()))


def test_tuning_time_and_peak_memory_are_those_of_the_run(tiny: Tiny) -> None:
    cache = ModelCache()
    spec = small_spec(tiny("llama"))
    found = messages(spec, cache)
    assert found[-1].result.tuning.seconds == sum(step.seconds for step in of(StepLoss, found))  # type: ignore[union-attr]
    ballast = torch.ones(2**28)  # 1 GiB that a later run has nothing to do with
    with_ballast = messages(spec, cache)[-1].result.peak_memory_mb  # type: ignore[union-attr]
    del ballast
    if sys.platform == "linux":
        assert messages(spec, cache)[-1].result.peak_memory_mb < with_ballast - 900  # type: ignore[union-attr]


def test_loading_says_what_takes_time(tmp_path: Path) -> None:
    """What `models.load` reports arrives as events of the phase, before the model does."""

    class Slow(ModelCache):
        def get(self, spec: RunSpec, report: Callable[[str], None]) -> LoadedModel:
            report("Downloading (1 MB)")
            raise UserError("no more")

    heard = []
    with pytest.raises(UserError, match="no more"):
        for message in experiment.run(RunSpec(), ResumeState(), Slow()):
            heard.append(message)
    assert [m.detail for m in of(PhaseStarted, heard)] == ["", "Downloading (1 MB)"]


def test_a_prompt_longer_than_the_models_context_is_refused(tiny: Tiny) -> None:
    with pytest.raises(UserError, match="lower --shots or --virtual-tokens"):
        messages(small_spec(tiny("llama"), shots=32))


def test_format_rises_and_knowledge_does_not_fall_on_the_real_model(bundled_home: Path) -> None:
    """The claim of the method, in small: 20 steps, 16 capitals, the bundled model."""
    found = messages(RunSpec(steps=20, items=16, probe_every=0, chat_template="off"))
    zero, few, soft = (scored.scores for scored in of(MethodScored, found))
    assert zero.format.rate < 0.10
    assert soft.format.rate >= 0.90
    assert soft.knowledge.rate >= zero.knowledge.rate
    assert soft.exact_match.rate > few.exact_match.rate
