"""The order of work of one run: load, zero-shot, few-shot, tuning with probes, soft prompt, and LoRA where asked for.

`run` is a generator of messages and knows nothing of files or pages; closing it between two messages stops the run,
and starting it again with what was kept goes on with the same result as an unbroken run.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from spt import benchmarks, controls, events, models, run_checks
from spt.analysis import analyse
from spt.benchmarks.base import Benchmark, Example, Split
from spt.evaluation import EVAL_BATCH, Evaluator
from spt.events import Message, Phase, Predictions, PromptFiles, ResumeState, phases_of
from spt.machine import device_name, peak_memory_mb, reset_peak_memory, versions
from spt.metrics import MethodScores, Prediction, Rate
from spt.models import LoadedModel
from spt.prompt import Provenance, SoftPrompt, VirtualTokens
from spt.prompting import Prompter, choose_items, choose_shots
from spt.spec import LORA, TUNED_ITEMS, Arm, Method, RunSpec
from spt.ticker import Tell, Ticker
from spt.tuning import TrainingRow, Tuner, initial_vectors, seen_rows, tuned_items_of

if TYPE_CHECKING:  # PEFT is imported by the runs that need it
    from spt.lora import LoraTuner


@dataclass
class ModelCache:
    """Keeps the model that was used last, so that a second run on it starts at once."""

    key: tuple[str, str | None, str] | None = None
    loaded: LoadedModel | None = None

    def get(self, spec: RunSpec, report: models.Report) -> LoadedModel:
        """The model of a spec; `report` hears what takes time. Raises UserError as `models.load` does."""
        key = (spec.model, spec.revision, spec.precision)
        if self.loaded is None or key != self.key:
            self.key = self.loaded = None  # let the old one go before the new one is loaded
            self.loaded = models.load(spec.model, spec.revision, spec.precision, report)
            self.key = key
        return self.loaded


@dataclass
class _Job:
    """What the phases of a run share."""

    spec: RunSpec
    resume: ResumeState
    benchmark: Benchmark
    split: Split
    items: tuple[Example, ...]
    tuned_items: tuple[Example, ...]
    loaded: LoadedModel
    virtual: VirtualTokens
    prompter: Prompter
    evaluator: Evaluator
    ticker: Ticker
    seconds: dict[str, float]
    steps: dict[int, events.StepLoss]
    answers: dict[Method, list[Prediction]] = field(default_factory=dict)
    scores: dict[Method, MethodScores] = field(default_factory=dict)
    lora: LoraTuner | None = None  # while its adapter is in the model
    lora_steps: dict[int, events.LoraStep] = field(default_factory=dict)


def run(
    spec: RunSpec, resume: ResumeState, cache: ModelCache, tell: Tell = lambda progress: None
) -> Generator[Message, None, None]:
    """Run a spec, going on from `resume`. Raises UserError for what the user can mend.

    `tell` hears signs of life between two messages, from within a batch of answers.
    """
    yield events.RunStarted(run=spec.run_id, resumed=bool(resume.events))
    asked = benchmarks.asked_of_hub(spec)
    yield events.PhaseStarted(phase="load", detail=asked)
    benchmark, split = benchmarks.load(spec)
    if asked:
        yield events.PhaseStarted(phase="load")  # there, and what takes time now is the model
    shots = choose_shots(split.train, spec.shots, spec.seed)
    start = time.perf_counter()
    reset_peak_memory()
    loaded = yield from _load(spec, cache)
    run_checks.same_model(loaded, resume)
    run_checks.same_rows(benchmark, split, resume)
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(None)
    chat = run_checks.uses_chat(spec, loaded)
    yield events.ModelLoaded(
        model=loaded.name,
        revision=loaded.revision,
        parameters=loaded.parameters,
        device=device_name(loaded.device),
        precision=loaded.precision,
        chat_template=chat,
        embedding_rms=virtual.rms(),
        seconds=time.perf_counter() - start,
    )
    items = choose_items(split.test, spec.items)
    tuned_items = tuple(split.train[i] for i in tuned_items_of(spec, len(split.train)))
    yield events.DataLoaded(
        benchmark=benchmark.name,
        format=benchmark.format.name,
        closed=benchmark.closed,
        train=len(split.train),
        test=len(split.test),
        items=len(items),
        dropped=split.dropped,
        fingerprint=split.fingerprint,
        tuned_items=len(tuned_items),
        probed=tuple(
            events.Question(id=e.id, question=e.question, options=e.options, target=e.target, topic=e.topic)
            for e in items[: spec.probe_items]
        ),
    )
    prompter = Prompter(loaded.tokenizer, benchmark, chat, shots, loaded.eos_ids, _virtual_ids(virtual, spec))
    ticker = Ticker(tell)
    evaluator = Evaluator(loaded, benchmark, prompter, resume.limit("evaluation") or EVAL_BATCH, listen=ticker)
    steps = {event.step: event for event in resume.events if isinstance(event, events.StepLoss)}
    seconds = resume.seconds()
    job = _Job(
        spec, resume, benchmark, split, items, tuned_items, loaded, virtual, prompter, evaluator, ticker, seconds, steps
    )
    job.lora_steps = {event.step: event for event in resume.events if isinstance(event, events.LoraStep)}
    if LORA in spec.method:
        run_checks.takes_lora(loaded)
    job.seconds["load"] = time.perf_counter() - start
    run_checks.length(loaded, evaluator, (*items, *tuned_items))
    try:
        for phase in phases_of(spec)[1:]:
            match phase:
                case "tuning":
                    work = _tune(job)
                case "controls":
                    work = _answer_controls(job)
                case "lora_tuning":
                    work = _tune_lora(job)
                case method:
                    work = _answer(job, method)
            yield from _timed(job, phase, work)
        yield events.RunFinished(result=_result(job))
    finally:
        virtual.set(None)  # the model stays loaded for the next run
        if job.lora is not None:
            job.lora.remove()


def _load(spec: RunSpec, cache: ModelCache) -> Generator[Message, None, LoadedModel]:
    """The model, loaded in a thread, so that a download can be followed."""
    notes: SimpleQueue[str] = SimpleQueue()
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(cache.get, spec, notes.put)
        while not loading.done() or not notes.empty():
            try:
                yield events.PhaseStarted(phase="load", detail=notes.get(timeout=0.1))
            except Empty:
                continue
        return loading.result()


def _virtual_ids(virtual: VirtualTokens, spec: RunSpec) -> dict[Method, tuple[int, ...]]:
    """The ids of each arm's vectors, in turn; the tuned items are answered with the real prompt."""
    ids = {
        arm.name: tuple(virtual.first_id + spec.virtual_tokens * place + i for i in range(spec.virtual_tokens))
        for place, arm in enumerate(spec.arms)
    }
    return {**ids, TUNED_ITEMS: ids["soft_prompt"]}


def _timed(job: _Job, phase: str, messages: Iterator[Message]) -> Iterator[Message]:
    """Pass messages on, adding the seconds spent making them to the phase."""
    while True:
        start = time.perf_counter()
        message = next(messages, None)
        job.seconds[phase] = job.seconds.get(phase, 0.0) + time.perf_counter() - start
        if message is None:
            return
        yield message


def _answer(job: _Job, method: Phase) -> Iterator[Message]:
    """Answer all test items with one method."""
    yield events.PhaseStarted(phase=method, total=len(job.items))
    job.ticker.at(method, 0, len(job.items))
    for done, messages in _score(job, method, job.items):
        yield from messages
        yield job.ticker.at(method, done, len(job.items))
    yield events.MethodScored(method=method, scores=job.scores[method])


def _answer_controls(job: _Job) -> Iterator[Message]:
    """The test items with every further arm, and the tuned items with the real prompt."""
    work = [(arm.name, job.items) for arm in job.spec.arms[1:]] + [(TUNED_ITEMS, job.tuned_items)]
    total, before = sum(len(items) for _, items in work), 0
    yield events.PhaseStarted(phase="controls", total=total)
    job.ticker.at("controls", 0, total)
    for name, items in work:
        for done, messages in _score(job, name, items):
            yield from messages
            yield job.ticker.at("controls", before + done, total)
        before += len(items)
        yield events.MethodScored(method=name, scores=job.scores[name])


def _score(job: _Job, method: Method, items: Sequence[Example]) -> Iterator[tuple[int, list[Message]]]:
    """Answer items batch by batch: (items done, messages). Batches that are already stored are not run again."""
    done = {p.id: p for p in job.resume.predictions.get(method, ())}
    for batch in job.evaluator.batches(method, items):
        messages: list[Message] = []
        if any(item.id not in done for item in batch):
            rows = job.evaluator.answer(method, batch)
            done |= {row.id: row for row in rows}
            messages += [*_taken(job.evaluator.notices), Predictions(method, rows)]
        yield sum(item.id in done for item in items), messages
    job.answers[method] = [done[item.id] for item in items]
    job.scores[method] = MethodScores.of(job.answers[method], job.benchmark.closed)


def _tune(job: _Job) -> Iterator[Message]:
    """Tune all arms, probing a few test items before the first step, every k steps and after the last."""
    spec, checkpoint = job.spec, job.resume.checkpoint
    rows = [_training_rows(job, arm, arm.name) for arm in spec.arms]
    vectors = [
        initial_vectors(job.virtual, [r.context + r.target for r in own.values()], spec.virtual_tokens, arm.seed)
        for arm, own in zip(spec.arms, rows, strict=True)
    ]
    job.virtual.set(torch.cat(vectors))
    tuner = Tuner(job.loaded, job.virtual, rows, len(job.split.train), spec, job.resume.limit("tuning"))
    if checkpoint is not None:
        tuner.restore(checkpoint)
    yield events.PhaseStarted(phase="tuning", total=spec.steps)
    probed = {event.step for event in job.resume.events if isinstance(event, events.Probe)}
    if spec.probe_every and tuner.step_done not in probed and _probe_due(spec, tuner.step_done):
        yield from _probe(job, tuner.step_done)
    while tuner.step_done < spec.steps:
        step_loss = tuner.step()
        job.steps[step_loss.step] = step_loss
        yield from _taken(tuner.notices)
        yield step_loss
        yield tuner.checkpoint()
        if _probe_due(spec, tuner.step_done):
            yield from _probe(job, tuner.step_done)
    for arm, own_vectors in zip(spec.arms, tuner.vectors.split(spec.virtual_tokens), strict=True):
        yield PromptFiles(_soft_prompt(job, own_vectors).files(), arm.name)


def _tune_lora(job: _Job) -> Iterator[Message]:
    """Put LoRA's adapter into the model and tune it; it stays there for its answers."""
    from spt.lora import LoraTuner, tune

    job.virtual.set(None)  # the prompt is that of zero-shot answers
    rows = _training_rows(job, job.spec.arms[0], LORA)
    limit = job.resume.limit("lora_tuning")
    job.lora = LoraTuner(job.loaded, rows, len(job.split.train), job.spec, limit)
    if job.resume.lora_checkpoint is not None:
        job.lora.restore(job.resume.lora_checkpoint)
    for message in tune(job.lora, _provenance(job, "none: LoRA, behind the zero-shot prompt")):
        if isinstance(message, events.LoraStep):
            job.lora_steps[message.step] = message
        yield message


def _training_rows(job: _Job, arm: Arm, method: Method) -> dict[int, TrainingRow]:
    train, prompter = job.split.train, job.prompter
    targets = controls.targets(arm, train, job.benchmark)
    return {
        i: TrainingRow(tuple(prompter.context(train[i], method)), tuple(prompter.target(targets[i])))
        for i in seen_rows(job.spec, arm.seed, len(train))
    }


def _probe_due(spec: RunSpec, step: int) -> bool:
    return spec.probe_every > 0 and (step % spec.probe_every == 0 or step == spec.steps)


def _taken(notices: list[events.MemoryReduced]) -> list[Message]:
    """Notices that were not told yet; they count as told."""
    taken: list[Message] = [*notices]
    notices.clear()
    return taken


def _probe(job: _Job, step: int) -> Iterator[Message]:
    """A probe of the real prompt; further arms are asked every second time and at the end, to cost half as much."""
    spec, items = job.spec, job.items[: job.spec.probe_items]
    job.ticker.at("tuning", step, spec.steps)
    all_arms = step == spec.steps or step // spec.probe_every % 2 == 0
    arms = spec.arms if all_arms else spec.arms[:1]
    rows = {arm.name: job.evaluator.answer_all(arm.name, items) for arm in arms}
    scores = {
        name: events.ProbeScores(
            format=Rate.of(row.in_format for row in found),
            knowledge=Rate.of(row.knows for row in found),
            exact_match=Rate.of(row.exact_match for row in found),
        )
        for name, found in rows.items()
    }
    real = scores.pop("soft_prompt")
    yield from _taken(job.evaluator.notices)
    yield events.Probe(
        step=step,
        format=real.format,
        knowledge=real.knowledge,
        exact_match=real.exact_match,
        answers=tuple(
            events.ProbeAnswer(id=r.id, response=r.response, in_format=r.in_format, right=r.knows)
            for r in rows["soft_prompt"]
        ),
        arms=scores,
    )


def _soft_prompt(job: _Job, vectors: Tensor) -> SoftPrompt:
    inside = "chat template, user turn: " if job.prompter.chat else "[BOS] "
    return SoftPrompt(vectors.detach().float().cpu(), _provenance(job, f"{inside}[S] question"))


def _provenance(job: _Job, position: str) -> Provenance:
    return Provenance(
        model=job.loaded.name,
        revision=job.loaded.revision,
        benchmark=job.benchmark.name,
        position=position,
        chat_template=job.prompter.chat,
        spec=job.spec.model_dump(),
        versions=versions(),
    )


def _summary(job: _Job, steps: Mapping[int, events.StepLoss | events.LoraStep], trainable: int) -> events.TuningSummary:
    return events.TuningSummary(
        steps=job.spec.steps,
        seconds=sum(step.seconds for step in steps.values()),
        trainable_parameters=trainable,
        trainable_share=trainable / job.loaded.parameters,
        final_loss=steps[job.spec.steps].loss,
    )


def _result(job: _Job) -> events.Result:
    return events.Result(
        run=job.spec.run_id,
        spec=job.spec,
        methods=job.scores,
        analysis=analyse(job.answers, job.benchmark.closed, job.spec.arms),
        tuning=_summary(job, job.steps, job.spec.virtual_tokens * job.virtual.embedding.embedding_dim),
        lora=None if job.lora is None else _summary(job, job.lora_steps, job.lora.trainable),
        model={
            "name": job.loaded.name,
            "revision": job.loaded.revision,
            "parameters": job.loaded.parameters,
            "precision": job.loaded.precision,
            "chat_template": job.prompter.chat,
        },
        benchmark={
            "name": job.benchmark.name,
            "format": job.benchmark.format.name,
            "closed": job.benchmark.closed,
            "train": len(job.split.train),
            "test": len(job.split.test),
            "dropped": job.split.dropped,
        },
        device=device_name(job.loaded.device),
        seconds=job.seconds,
        peak_memory_mb=peak_memory_mb(job.loaded.device),
        versions=versions(),
    )
