"""A stored soft prompt on test items: on the model it was tuned for, or, where it is forced, on another of its width.

    settings = settings_of(folder.spec, items=512)
    for progress in evaluate(folder, settings): ...       # the generator's value is a PromptScores

Nothing is stored: what comes out is no run, has another shape than a `result.json`, and is never ranked. A prompt that
is used on another checkpoint than its own is labelled as transferred in the result itself.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from spt import benchmarks, models, run_checks
from spt.analysis import Comparison, KnowledgeEquivalence, analyse
from spt.evaluation import EVAL_BATCH, Evaluator
from spt.events import DataLoaded
from spt.machine import device_name, versions
from spt.metrics import MethodScores, Prediction
from spt.prompt import Provenance, SoftPrompt, VirtualTokens
from spt.prompting import Prompter, choose_items
from spt.spec import Method, RunSpec, UserError
from spt.store import RunFolder

METHODS: tuple[Method, ...] = ("zero_shot", "soft_prompt")


class Transfer(BaseModel):
    """That a prompt was used on another checkpoint than the one it was tuned for."""

    tuned_for: str
    used_on: str

    @classmethod
    def of(cls, tuned: Provenance, loaded: models.LoadedModel) -> Transfer:
        both = ((tuned.model, tuned.revision), (loaded.name, loaded.revision))
        own, here = (name if revision is None else f"{name} at {revision}" for name, revision in both)
        return cls(tuned_for=own, used_on=here)


class PromptScores(BaseModel):
    """What a stored prompt reaches. `transfer` is None on the model it was tuned for."""

    kind: Literal["prompt-scores"] = "prompt-scores"
    prompt: str = Field(description="id of the run that tuned it")
    transfer: Transfer | None
    model: str
    revision: str | None
    precision: str
    chat_template: bool
    benchmark: str
    tuned_on: str = Field(description="the benchmark whose rows it was tuned on")
    scores: dict[Method, MethodScores]
    comparisons: tuple[Comparison, ...]
    equivalence: tuple[KnowledgeEquivalence, ...]
    device: str
    seconds: float
    versions: dict[str, str]


class Done(NamedTuple):
    """How many of the items a method has answered."""

    method: Method
    done: int
    total: int


def settings_of(
    spec: RunSpec, model: str | None = None, revision: str | None = None, benchmark: str | None = None,
    items: int | None = None,
) -> RunSpec:  # fmt: skip
    """The settings of an evaluation: those of the prompt's run but for what is given. Raises UserError."""
    settings = spec.model_dump()
    if model is not None or revision is not None:
        settings |= {"model": model or spec.model, "revision": revision}
    if benchmark is not None and benchmark != spec.benchmark:
        own = {"answer_format": None, "template": None, "pattern": None, "holdout_topic": None}
        settings |= {"benchmark": benchmark, **own}
    if items is not None:
        settings["items"] = items
    return benchmarks.canonical(RunSpec.parse(**settings))


def prompt_of(folder: RunFolder) -> SoftPrompt:
    """The prompt of a run. Raises UserError where there is none."""
    if not folder.prompt.exists():
        raise UserError(f"Run {folder.id} has no soft prompt yet: let it go on until it has been tuned.")
    return SoftPrompt.load(folder.prompt)


def evaluate(
    folder: RunFolder, spec: RunSpec, force: bool = False, report: models.Report = lambda note: None
) -> Generator[Done, None, PromptScores]:
    """Answer the test items of `spec` zero-shot and with the prompt of a run.

    Raises UserError: a prompt of another model or revision without `force`, of another width always, another form of
    answer, and what loading a model or benchmark raises.
    """
    start = time.perf_counter()
    prompt = prompt_of(folder)
    tuned = prompt.provenance
    if spec.model != tuned.model:  # before minutes of loading
        prompt.check_fits(spec.model, spec.revision, prompt.vectors.shape[1], force)
    benchmark, split = benchmarks.load(spec)
    form = next((event.format for event in folder.events() if isinstance(event, DataLoaded)), benchmark.format.name)
    if benchmark.format.name != form:
        raise UserError(
            f"The prompt of {folder.id} was tuned for answers of the form {form!r}, and {benchmark.name} asks for "
            f"{benchmark.format.name!r}: choose a benchmark of its form."
        )
    loaded = models.load(spec.model, spec.revision, spec.precision, report)
    virtual = VirtualTokens.attach(loaded.model)
    fits = prompt.check_fits(loaded.name, loaded.revision, virtual.embedding.embedding_dim, force)
    # As it was tuned: what the prompt was put in front of decides on what it means.
    spec = spec.model_copy(update={"chat_template": "on" if tuned.chat_template else "off"})
    chat = run_checks.uses_chat(spec, loaded)
    virtual.set(prompt.vectors)
    prompter = Prompter(
        loaded.tokenizer, benchmark, chat, (), loaded.eos_ids, {"soft_prompt": tuple(virtual.ids)}
    )  # fmt: skip
    evaluator = Evaluator(loaded, benchmark, prompter, EVAL_BATCH)
    items = choose_items(split.test, spec.items)
    run_checks.length(loaded, evaluator, items)
    answers: dict[Method, list[Prediction]] = {}
    for method in METHODS:
        found: dict[str, Prediction] = {}
        for batch in evaluator.batches(method, items):
            found |= {row.id: row for row in evaluator.answer(method, batch)}
            yield Done(method, len(found), len(items))
        answers[method] = [found[item.id] for item in items]
    numbers = analyse(answers, benchmark.closed, ())
    return PromptScores(
        prompt=folder.id,
        transfer=None if fits else Transfer.of(tuned, loaded),
        model=loaded.name,
        revision=loaded.revision,
        precision=loaded.precision,
        chat_template=chat,
        benchmark=benchmark.name,
        tuned_on=tuned.benchmark,
        scores={method: MethodScores.of(rows, benchmark.closed) for method, rows in answers.items()},
        comparisons=numbers.comparisons,
        equivalence=numbers.equivalence,
        device=device_name(loaded.device),
        seconds=time.perf_counter() - start,
        versions=versions(),
    )
