"""The order of work of one run: load, zero-shot, few-shot, tuning with probes, soft prompt.

`run` is a generator of messages and knows nothing of files or pages; closing it between two messages stops the run,
and starting it again with what was kept goes on with the same result as an unbroken run.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from torch import Tensor

from spt import benchmarks, events, models
from spt.benchmarks.base import Benchmark, Example, Split
from spt.events import Message, Predictions, PromptFiles, ResumeState
from spt.generation import generate
from spt.likelihood import option_logprobs
from spt.machine import device_name, peak_memory_mb, reset_peak_memory, versions
from spt.metrics import MethodScores, Prediction, Rate
from spt.models import LoadedModel
from spt.prompt import Provenance, SoftPrompt, VirtualTokens
from spt.prompting import Prompter, choose_items, choose_shots
from spt.spec import METHODS, Method, RunSpec, UserError
from spt.tuning import TrainingRow, Tuner, initial_vectors

EVAL_BATCH = 16  # items; the same for all methods of a run, so that comparisons stay paired in bf16 too


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
    loaded: LoadedModel
    virtual: VirtualTokens
    prompter: Prompter
    seconds: dict[str, float]
    steps: dict[int, events.StepLoss]
    scores: dict[Method, MethodScores] = field(default_factory=dict)


def run(spec: RunSpec, resume: ResumeState, cache: ModelCache) -> Generator[Message, None, None]:
    """Run a spec, going on from `resume`. Raises UserError for what the user can mend."""
    yield events.RunStarted(run=spec.run_id, resumed=bool(resume.events))
    yield events.PhaseStarted(phase="load")
    benchmark = benchmarks.for_spec(spec)
    split = benchmark.load(spec.data_dir)
    shots = choose_shots(split.train, spec.shots, spec.seed)
    start = time.perf_counter()
    reset_peak_memory()
    loaded = yield from _load(spec, cache)
    _check_same_model(loaded, resume)
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(None)
    chat = uses_chat(spec, loaded)
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
    yield events.DataLoaded(
        benchmark=benchmark.name,
        format=benchmark.format.name,
        closed=benchmark.closed,
        train=len(split.train),
        test=len(split.test),
        items=len(items),
        dropped=split.dropped,
        probed=tuple(
            events.Question(id=e.id, question=e.question, options=e.options, target=e.target, topic=e.topic)
            for e in items[: spec.probe_items]
        ),
    )
    virtual_ids = tuple(range(virtual.first_id, virtual.first_id + spec.virtual_tokens))
    prompter = Prompter(loaded.tokenizer, benchmark, chat, shots, loaded.eos_ids, virtual_ids)
    steps = {event.step: event for event in resume.events if isinstance(event, events.StepLoss)}
    job = _Job(spec, resume, benchmark, split, items, loaded, virtual, prompter, seconds_so_far(resume), steps)
    job.seconds["load"] = time.perf_counter() - start
    _check_length(job)
    try:
        for phase, work in (
            ("zero_shot", lambda: _score(job, "zero_shot")),
            ("few_shot", lambda: _score(job, "few_shot")),
            ("tuning", lambda: _tune(job)),
            ("soft_prompt", lambda: _score(job, "soft_prompt")),
        ):
            yield from _timed(job, phase, work())
        yield events.RunFinished(result=_result(job))
    finally:
        virtual.set(None)  # the model stays loaded for the next run


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


def _check_same_model(loaded: LoadedModel, resume: ResumeState) -> None:
    """Raise UserError where the run began with another model: its vectors and answers cannot be gone on with."""
    for event in resume.events:
        if isinstance(event, events.ModelLoaded) and (event.model, event.revision) != (loaded.name, loaded.revision):
            raise UserError(
                f"{loaded.name} is at {loaded.revision or 'no revision'} now, and this run began at "
                f"{event.revision or 'no revision'}: run it anew (--again), or bring that model back."
            )


def uses_chat(spec: RunSpec, loaded: LoadedModel) -> bool:
    """Whether prompts go through the chat template: as asked, `auto` = for post-trained models."""
    if spec.chat_template == "auto":
        return loaded.post_trained
    if spec.chat_template == "on" and not loaded.tokenizer.chat_template:
        raise UserError(f"{loaded.name} has no chat template; use --chat-template off.")
    return spec.chat_template == "on"


def _timed(job: _Job, phase: str, messages: Iterator[Message]) -> Iterator[Message]:
    """Pass messages on, adding the seconds spent making them to the phase."""
    while True:
        start = time.perf_counter()
        message = next(messages, None)
        job.seconds[phase] = job.seconds.get(phase, 0.0) + time.perf_counter() - start
        if message is None:
            return
        yield message


def seconds_so_far(resume: ResumeState) -> dict[str, float]:
    """Wall seconds by phase of earlier attempts, read from the times of their events."""
    seconds: dict[str, float] = {}
    phase: str | None = None
    before = 0.0
    for event in resume.events:
        if isinstance(event, events.RunStarted):
            phase = None  # the gap since the last attempt is nobody's time
        elif phase is not None:
            seconds[phase] = seconds.get(phase, 0.0) + event.time - before
        if isinstance(event, events.PhaseStarted):
            phase = event.phase
        before = event.time
    return seconds


def _score(job: _Job, method: Method) -> Iterator[Message]:
    """Answer all items with one method, batch by batch; batches that are already stored are not run again."""
    done = {p.id: p for p in job.resume.predictions.get(method, ())}
    yield events.PhaseStarted(phase=method, total=len(job.items))
    for batch in _batches(job, method):
        missing = [item for item in batch if item.id not in done]
        if missing:
            rows = _predict(job, method, batch)
            done |= {row.id: row for row in rows}
            yield Predictions(method, rows)
        yield events.Progress(phase=method, done=sum(i.id in done for i in job.items), total=len(job.items))
    job.scores[method] = MethodScores.of([done[item.id] for item in job.items], job.benchmark.closed)
    yield events.MethodScored(method=method, scores=job.scores[method])


def _batches(job: _Job, method: Method, items: Sequence[Example] | None = None) -> list[tuple[Example, ...]]:
    """Items in batches of like length. Planned over all items, so a resumed run forms the same batches."""
    items = job.items if items is None else items
    ordered = sorted(items, key=lambda item: (len(job.prompter.context(item, method)), item.id))
    return [tuple(ordered[i : i + EVAL_BATCH]) for i in range(0, len(ordered), EVAL_BATCH)]


def _predict(job: _Job, method: Method, batch: Sequence[Example]) -> tuple[Prediction, ...]:
    form, prompter = job.benchmark.format, job.prompter
    contexts = [prompter.context(item, method) for item in batch]
    answers = generate(job.loaded, contexts, form)
    logprobs: list[list[float]] = [[] for _ in batch]
    if job.benchmark.closed:
        options = [[prompter.answer(option) for option in item.options] for item in batch]
        logprobs = option_logprobs(job.loaded, contexts, options)
    rows = []
    for item, answer, scores in zip(batch, answers, logprobs, strict=True):
        if job.benchmark.closed:
            knows = item.options[scores.index(max(scores))] == item.target
        else:
            knows = form.knows(answer.text, item)
        rows.append(
            Prediction(
                id=item.id,
                question=item.question,
                options=item.options,
                topic=item.topic,
                target=item.target,
                answer=item.answer,
                response=answer.text,
                in_format=form.in_format(answer.text, item),
                knows=knows,
                exact_match=form.exact_match(answer.text, item),
                stopped_by=answer.stopped_by,
                option_logprobs=tuple(scores),
            )
        )
    return tuple(rows)


def _tune(job: _Job) -> Iterator[Message]:
    """Tune the soft prompt, probing a few test items before the first step, every k steps and after the last."""
    spec, checkpoint = job.spec, job.resume.checkpoint
    rows = [
        TrainingRow(tuple(job.prompter.context(e, "soft_prompt")), tuple(job.prompter.target(e.target)))
        for e in job.split.train
    ]
    texts = [row.context + row.target for row in rows]
    job.virtual.set(initial_vectors(job.virtual, texts, spec.virtual_tokens, spec.seed))
    tuner = Tuner(job.loaded, job.virtual, rows, spec)
    if checkpoint is not None:
        tuner.restore(checkpoint)
    yield events.PhaseStarted(phase="tuning", total=spec.steps)
    probed = {event.step for event in job.resume.events if isinstance(event, events.Probe)}
    if spec.probe_every and tuner.step_done not in probed and _probe_due(spec, tuner.step_done):
        yield _probe(job, tuner.step_done)
    while tuner.step_done < spec.steps:
        step_loss = tuner.step()
        job.steps[step_loss.step] = step_loss
        yield step_loss
        yield tuner.checkpoint()
        if _probe_due(spec, tuner.step_done):
            yield _probe(job, tuner.step_done)
    yield PromptFiles(_soft_prompt(job, tuner.vectors).files())


def _probe_due(spec: RunSpec, step: int) -> bool:
    return spec.probe_every > 0 and (step % spec.probe_every == 0 or step == spec.steps)


def _probe(job: _Job, step: int) -> events.Probe:
    items = job.items[: job.spec.probe_items]
    found = {p.id: p for batch in _batches(job, "soft_prompt", items) for p in _predict(job, "soft_prompt", batch)}
    rows = [found[item.id] for item in items]
    return events.Probe(
        step=step,
        format=Rate.of(row.in_format for row in rows),
        knowledge=Rate.of(row.knows for row in rows),
        exact_match=Rate.of(row.exact_match for row in rows),
        answers=tuple(
            events.ProbeAnswer(id=r.id, response=r.response, in_format=r.in_format, right=r.knows) for r in rows
        ),
    )


def _check_length(job: _Job) -> None:
    """Raise UserError where the longest prompt and its answer do not fit the model's context."""
    limit = getattr(job.loaded.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    for method in METHODS:
        longest = max(len(job.prompter.context(item, method)) for item in job.items)
        needed = longest + job.benchmark.format.max_new_tokens
        if limit is not None and needed > limit:
            raise UserError(
                f"The {method} prompt of {job.benchmark.name} needs {needed} tokens and {job.loaded.name} takes "
                f"{limit}: lower --shots or --virtual-tokens, or choose another model."
            )


def _soft_prompt(job: _Job, vectors: Tensor) -> SoftPrompt:
    inside = "chat template, user turn: " if job.prompter.chat else "[BOS] "
    return SoftPrompt(
        vectors.detach().float().cpu(),
        Provenance(
            model=job.loaded.name,
            revision=job.loaded.revision,
            benchmark=job.benchmark.name,
            position=f"{inside}[S] question",
            chat_template=job.prompter.chat,
            spec=job.spec.model_dump(),
            versions=versions(),
        ),
    )


def _result(job: _Job) -> events.Result:
    trainable = job.spec.virtual_tokens * job.virtual.embedding.embedding_dim
    return events.Result(
        run=job.spec.run_id,
        spec=job.spec,
        methods=job.scores,
        tuning=events.TuningSummary(
            steps=job.spec.steps,
            seconds=sum(step.seconds for step in job.steps.values()),
            trainable_parameters=trainable,
            trainable_share=trainable / job.loaded.parameters,
            final_loss=job.steps[job.spec.steps].loss,
        ),
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
