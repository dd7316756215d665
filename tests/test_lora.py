"""LoRA as a comparison arm: the soft prompt's steps and rows, a base that is left as it was, and runs that go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM

from spt import experiment, lora, models
from spt.events import Checkpoint, LoraStep, MemoryReduced, Message, PhaseStarted, Predictions, PromptFiles
from spt.experiment import ModelCache
from spt.lora import LoraTuner, attach, remove
from spt.memory import of_spec
from spt.models import LoadedModel
from spt.prompt import VirtualTokens
from spt.quiet import quiet
from spt.runner import execute
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.tuning import TrainingRow
from spt.view import RunView
from tests.runs import outcome, small_spec, unbroken
from tests.test_out_of_memory import device_of
from tests.tiny import ARCHITECTURES, make

Tiny = Callable[[str], Path]
CACHE = ModelCache()
IDS = torch.arange(5, 45)[None]
SPEC = RunSpec(steps=6, batch_size=3)


@pytest.fixture(scope="module")
def spec(tiny: Tiny) -> RunSpec:
    return small_spec(tiny("llama"), method=("lora",))


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every step."""
    monkeypatch.setattr(lora, "CHECKPOINT_SECONDS", 0.0)


def state(loaded: LoadedModel) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}


@torch.no_grad()
def logits(model: Any) -> Tensor:
    return model(input_ids=IDS, use_cache=False).logits


def untouched(loaded: LoadedModel, before: dict[str, Tensor], said: Tensor) -> None:
    after = state(loaded)
    assert list(after) == list(before) and all(torch.equal(after[name], before[name]) for name in before)
    assert torch.equal(logits(loaded.model), said)
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())
    assert not hasattr(loaded.model, "peft_config")


def rows(loaded: LoadedModel, count: int = 10) -> dict[int, TrainingRow]:
    generator = torch.Generator().manual_seed(3)
    found = {}
    for i in range(count):
        n, k = torch.randint(2, 12, (2,), generator=generator).tolist()
        text = torch.randint(5, 200, (n + k,), generator=generator).tolist()
        found[i] = TrainingRow(tuple(text[:n]), (*text[n:], loaded.eos_ids[0]))
    return found


def tuner(loaded: LoadedModel, spec: RunSpec = SPEC, tokens_at_once: int | None = None) -> LoraTuner:
    with quiet():
        return LoraTuner(loaded, rows(loaded), 10, spec, tokens_at_once)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_adapter_goes_into_every_model_and_out_again(architecture: str, tiny: Tiny) -> None:
    loaded = models.load(str(tiny(architecture)))
    VirtualTokens.attach(loaded.model)  # as a run does before
    before, said = state(loaded), logits(loaded.model)
    tuning = tuner(loaded, SPEC.model_copy(update={"batch_size": 10}))  # all rows in every step
    assert torch.equal(logits(loaded.model), said), "a fresh adapter changes nothing"
    names = [name for name, parameter in loaded.model.named_parameters() if parameter.requires_grad]
    assert names and all(".lora_A." in name or ".lora_B." in name for name in names)
    assert {parameter.dtype for parameter in tuning.parameters} == {torch.float32}
    whole: Any = loaded.model
    for kept in (whole.get_input_embeddings(), whole.get_output_embeddings()):
        assert not any(p.requires_grad for p in kept.parameters()), "neither the vocabulary nor the head"
    first = tuning.step().loss
    assert [tuning.step().loss for _ in range(5)][-1] < first
    assert not torch.equal(logits(loaded.model), said)
    tuning.remove()
    untouched(loaded, before, said)


def test_a_head_that_is_tied_is_left_alone(tmp_path: Path) -> None:
    loaded = models.load(str(make("llama", tmp_path, tie_word_embeddings=True)))
    VirtualTokens.attach(loaded.model)
    before, said = state(loaded), logits(loaded.model)
    tuning = tuner(loaded)
    assert not any("lm_head" in name for name, p in loaded.model.named_parameters() if p.requires_grad)
    tuning.step()
    tuning.remove()
    untouched(loaded, before, said)


@pytest.mark.parametrize("tokens_at_once", [1, 30, 1000])
def test_the_loss_is_that_of_the_answers_alone(tiny: Tiny, tokens_at_once: int) -> None:
    loaded = models.load(str(tiny("llama")))
    one = SPEC.model_copy(update={"batch_size": 10})
    tuning = tuner(loaded, one, tokens_at_once)
    said = tuning.step()
    losses = []
    remove(loaded.model)  # the loss of the first step is that of the model as it is
    for row in rows(loaded).values():
        found = loaded.model(input_ids=torch.tensor([row.context + row.target]), use_cache=False).logits[0]
        losses.append(cross_entropy(found[len(row.context) - 1 : -1], torch.tensor(row.target), reduction="none"))
    assert said.loss == pytest.approx(torch.cat(losses).mean().item(), abs=1e-5)
    assert said.learning_rate == lora.LEARNING_RATE / 5 and said.grad_norm > 0


def test_the_gradient_is_clipped_as_a_whole(tiny: Tiny) -> None:
    tuning = tuner(models.load(str(tiny("llama"))))
    for parameter in tuning.parameters:
        parameter.grad = torch.full_like(parameter, 3.0)
    (norm,) = tuning._clip()
    assert norm == pytest.approx(3 * tuning.trainable**0.5, rel=1e-4)
    total = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in tuning.parameters]))  # type: ignore[union-attr]
    assert total.item() == pytest.approx(1.0, abs=1e-4)


def test_going_on_from_a_checkpoint_equals_unbroken_tuning(tiny: Tiny) -> None:
    loaded = models.load(str(tiny("llama")))
    whole = tuner(loaded)
    losses = [whole.step().loss for _ in range(6)]
    weights = [parameter.detach().clone() for parameter in whole.parameters]
    whole.remove()
    broken = tuner(loaded)
    assert [broken.step().loss for _ in range(3)] == losses[:3], "the same spec gives the same bits"
    kept = broken.checkpoint()
    broken.remove()
    resumed = tuner(loaded)
    resumed.restore(kept)
    assert [resumed.step().loss for _ in range(3)] == losses[3:]
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters, weights, strict=True))
    other = tuner(models.load(str(tiny("llama"))), SPEC.model_copy(update={"seed": 1}))
    assert other.step().loss != losses[0], "other rows"


# ---- whole runs


@pytest.fixture(scope="module")
def whole(spec: RunSpec, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lora, "CHECKPOINT_SECONDS", 0.0)
        return unbroken(spec, tmp_path_factory.mktemp("unbroken"), lambda folder: execute(folder, CACHE))


def test_a_run_with_lora_tunes_answers_and_keeps_it(spec: RunSpec, whole: dict[str, Any]) -> None:
    folder = Store().create(spec)
    loaded = CACHE.get(spec, lambda note: None)
    VirtualTokens.attach(loaded.model)
    before, said = state(loaded), logits(loaded.model)
    heard: list[Message] = []
    assert execute(folder, CACHE, heard.append) == "finished"
    untouched(loaded, before, said)
    assert outcome(folder) == whole
    phases = [m.phase for m in heard if isinstance(m, PhaseStarted)]
    assert phases == ["load", "zero_shot", "few_shot", "tuning", "soft_prompt", "lora_tuning", "lora"]
    assert [m.step for m in heard if isinstance(m, LoraStep)] == [1, 2, 3, 4, 5]
    assert len(folder.predictions("lora")) == spec.items
    result = folder.result()
    assert result is not None and result.lora is not None and list(result.methods)[-1] == "lora"
    assert result.lora.steps == result.tuning.steps == 5 and result.lora.final_loss != result.tuning.final_loss
    assert result.lora.trainable_parameters > 10 * result.tuning.trainable_parameters
    assert set(result.seconds) == {*phases}
    assert result.analysis is not None
    assert result.analysis.comparison("lora", "soft_prompt", "exact_match") is not None
    assert len([f for f in result.analysis.findings if f.kind == "lora"]) == 2
    assert not list(folder.path.glob("checkpoint*")), "gone once the run is finished"
    view = RunView.of(folder.events(), spec)
    assert view.fraction == 1.0 and list(view.lora_losses) == [1, 2, 3, 4, 5]

    without = Store().create(small_spec(Path(spec.model)))
    execute(without, CACHE)
    own = outcome(without)
    assert all(own[part] == whole[part] for part in ("losses", "probes")), "the others are what they are without LoRA"
    assert all(own["predictions"][method] == whole["predictions"][method] for method in own["predictions"])
    folder.reset()
    assert not folder.lora.exists()


def test_the_first_rows_and_prompts_are_those_of_the_spec(spec: RunSpec, whole: dict[str, Any]) -> None:
    """The loss before the first update is that of the plain model on the zero-shot prompts of the first batch."""
    from spt import benchmarks
    from spt.prompting import Prompter
    from spt.tuning import rows_of_step

    loaded = CACHE.get(spec, lambda note: None)
    benchmark, split = benchmarks.load(spec)
    prompter = Prompter(loaded.tokenizer, benchmark, False, (), loaded.eos_ids, {})
    losses = []
    for i in rows_of_step(1, spec.batch_size, len(split.train), spec.seed):
        context = prompter.context(split.train[i], "zero_shot")
        target = prompter.target(split.train[i].target)
        found = loaded.model(input_ids=torch.tensor([context + target]), use_cache=False).logits[0]
        losses.append(cross_entropy(found[len(context) - 1 : -1], torch.tensor(target), reduction="none"))
    assert whole["lora"][0][0][1] == pytest.approx(torch.cat(losses).mean().item(), abs=1e-5)


MOMENTS: dict[str, Callable[[Message], bool]] = {
    "before its first step": lambda m: isinstance(m, PhaseStarted) and m.phase == "lora_tuning",
    "after a step, before its checkpoint": lambda m: isinstance(m, LoraStep) and m.step == 3,
    "after a checkpoint": lambda m: isinstance(m, Checkpoint) and m.method == "lora" and m.step == 3,
    "after its last checkpoint": lambda m: isinstance(m, Checkpoint) and m.method == "lora" and m.step == 5,
    "after the files": lambda m: isinstance(m, PromptFiles) and m.arm == "lora",
    "in its answers": lambda m: isinstance(m, Predictions) and m.method == "lora",
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_it_goes_on_to_the_same_bits(spec: RunSpec, whole: dict[str, Any], moment: str) -> None:
    loaded = CACHE.get(spec, lambda note: None)
    VirtualTokens.attach(loaded.model)
    before, said = state(loaded), logits(loaded.model)
    folder = Store().create(spec)
    run = experiment.run(spec, folder.resume_state(), CACHE)
    for message in run:
        folder.append(message)
        if MOMENTS[moment](message):
            break
    run.close()
    untouched(loaded, before, said)
    assert folder.status() == "interrupted"
    assert execute(RunFolder(folder.path, spec), CACHE) == "finished"
    assert outcome(folder) == whole
    untouched(loaded, before, said)


def test_a_checkpoint_now_and_then_is_enough(
    spec: RunSpec, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora, "CHECKPOINT_SECONDS", 1e6)
    folder = Store().create(spec)
    written = []
    for message in experiment.run(spec, folder.resume_state(), CACHE):
        folder.append(message)
        written += [message.step] if isinstance(message, Checkpoint) and message.method == "lora" else []
        if isinstance(message, LoraStep) and message.step == 4:
            break
    assert not written
    assert execute(folder, CACHE) == "finished"
    assert outcome(folder) == whole


def test_a_failure_in_the_middle_leaves_the_base_as_it_was(spec: RunSpec) -> None:
    loaded = CACHE.get(spec, lambda note: None)
    VirtualTokens.attach(loaded.model)
    before, said = state(loaded), logits(loaded.model)

    def break_down(message: Message) -> None:
        if isinstance(message, LoraStep):
            raise ZeroDivisionError("of all things")

    with pytest.raises(ZeroDivisionError):
        execute(Store().create(spec), CACHE, break_down)
    untouched(loaded, before, said)


def test_an_adapter_that_fails_half_way_leaves_the_base_as_it_was(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    from peft.tuners.lora import LoraModel

    loaded = models.load(str(tiny("llama")))
    before, said = state(loaded), logits(loaded.model)
    create, made = LoraModel._create_and_replace, []

    def full(self: Any, *arguments: Any, **more: Any) -> None:
        made.append(1)
        if len(made) == 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        create(self, *arguments, **more)

    monkeypatch.setattr(LoraModel, "_create_and_replace", full)
    with quiet(), pytest.raises(torch.OutOfMemoryError):
        attach(loaded.model, 0)
    untouched(loaded, before, said)


def test_a_model_without_a_place_for_it_is_told_before_anything_else(
    spec: RunSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lora, "config", lambda model: lora.LoraConfig(target_modules=["nowhere"]))
    folder = Store().create(spec)
    with pytest.raises(UserError, match=r"LoRA cannot be put into this model .* run without --method lora"):
        execute(folder, CACHE)
    assert not folder.predictions("zero_shot")


def test_peft_loads_the_saved_adapter_to_the_same_logits(spec: RunSpec) -> None:
    folder = Store().create(spec)
    said: list[Tensor] = []

    def listen(message: Message) -> None:
        if isinstance(message, PromptFiles) and message.arm == "lora":
            assert CACHE.loaded is not None
            said.append(logits(CACHE.loaded.model))

    execute(folder, CACHE, listen)
    assert {path.name for path in folder.lora.iterdir()} == {
        "adapter_config.json", "adapter_model.safetensors", "spt.json",
    }  # fmt: skip
    config = json.loads((folder.lora / "adapter_config.json").read_text())
    assert config["target_modules"] == sorted(config["target_modules"]), "the same bytes from every process"
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (8, 16, 0.0)
    assert config["base_model_name_or_path"] == spec.model
    base = AutoModelForCausalLM.from_pretrained(spec.model).eval()
    plain = logits(base)
    loaded = PeftModel.from_pretrained(base, str(folder.lora))
    assert torch.equal(logits(loaded), said[0])
    assert not torch.allclose(said[0], plain, atol=1e-3), "it learnt something, so the comparison can fail"


def test_out_of_memory_halves_and_the_curve_stays(spec: RunSpec, tmp_path: Path) -> None:
    spec = spec.model_copy(update={"batch_size": 6, "virtual_tokens": 1})
    free = Store(tmp_path / "free").create(spec)
    execute(free, CACHE)
    limited = Store(tmp_path / "limited").create(spec)
    assert CACHE.loaded is not None
    with device_of(CACHE.loaded, tokens=150, gradient=True) as refused:
        execute(limited, CACHE)
    told = [event for event in limited.events() if isinstance(event, MemoryReduced)]
    assert refused and "lora_tuning" in {notice.what for notice in told}
    mine, theirs = ([e.loss for e in folder.events() if isinstance(e, LoraStep)] for folder in (limited, free))
    assert mine == pytest.approx(theirs, abs=1e-5)


@pytest.mark.parametrize("precision", ["4bit", "bf16"])
def test_it_works_in_other_precisions(precision: str, tiny: Tiny) -> None:
    cache = ModelCache()
    spec = small_spec(tiny("llama"), method=("lora",), precision=precision, probe_every=0, items=4, steps=12)
    loaded = cache.get(spec, lambda note: None)
    VirtualTokens.attach(loaded.model)
    before, said = state(loaded), logits(loaded.model)
    folder = Store().create(spec)
    assert execute(folder, cache) == "finished"
    untouched(loaded, before, said)
    losses = [event.loss for event in folder.events() if isinstance(event, LoraStep)]
    assert len(losses) == 12 and all(loss > 0 for loss in losses)
    assert len(folder.predictions("lora")) == 4 and (folder.lora / "adapter_model.safetensors").exists()


def test_its_memory_is_counted() -> None:
    plain = of_spec(RunSpec())
    with_lora = of_spec(RunSpec(method=("lora",)))
    assert with_lora.tuning["LoRA and its optimizer"] == 16 * 2_442_240, "the bundled model's, rank 8"
    assert with_lora.total > plain.total and with_lora.weights == plain.weights
