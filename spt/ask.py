"""Answering a question with the three methods of a finished run: the same prompts, rules and decoding as in the run.

A test question of the run gets the answers that the run stored; in bf16 they may differ where two tokens are almost
equally likely, since a run answers in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from spt import benchmarks, run_checks
from spt.benchmarks.base import Benchmark
from spt.events import ResumeState
from spt.experiment import ModelCache
from spt.generation import Answer, stream
from spt.likelihood import option_logprobs
from spt.models import LoadedModel
from spt.prompt import SoftPrompt, VirtualTokens
from spt.prompting import Prompter, choose_shots
from spt.questions import Ask, Reply, Said
from spt.scoring import score
from spt.spec import METHODS, UserError
from spt.store import RunFolder

Listen = Callable[[Reply], None]


def answer(folder: RunFolder, ask: Ask, cache: ModelCache, listen: Listen) -> Reply:
    """Answer with every method, a token of each in turn. `listen` hears of every token, and may end it by raising.

    Raises UserError for what has changed since the run was made, and for a question that is too long.
    """
    spec = folder.spec
    listen(Reply(state="loading", note="Getting the model ready"))
    loaded = cache.get(spec, lambda note: listen(Reply(state="loading", note=note)))
    benchmark, split = benchmarks.load(spec)
    # Made of the same rows: else the worked examples were others.
    run_checks.same_rows(benchmark, split, ResumeState(events=tuple(folder.events())))
    virtual = VirtualTokens.attach(loaded.model)
    virtual.set(_prompt(folder, loaded, virtual.embedding.embedding_dim).vectors)
    try:
        prompter = Prompter(
            loaded.tokenizer,
            benchmark,
            run_checks.uses_chat(spec, loaded),
            choose_shots(split.train, spec.shots, spec.seed),
            loaded.eos_ids,
            {"soft_prompt": tuple(virtual.ids)},
        )
        return _answer(loaded, benchmark, prompter, ask, listen)
    finally:
        virtual.set(None)  # the model stays loaded for the next one


def _prompt(folder: RunFolder, loaded: LoadedModel, width: int) -> SoftPrompt:
    try:
        prompt = SoftPrompt.load(folder.prompt)
    except UserError:
        raise UserError(
            f"The soft prompt of run {folder.id} cannot be read: `{folder.spec.command()} --again` makes it anew."
        ) from None
    prompt.check_fits(loaded.name, loaded.revision, width)
    return prompt


def _answer(loaded: LoadedModel, benchmark: Benchmark, prompter: Prompter, ask: Ask, listen: Listen) -> Reply:
    contexts = {method: prompter.context(ask.example, method) for method in METHODS}
    _fits(loaded, max(map(len, contexts.values())) + benchmark.format.max_new_tokens)
    said = {method: Said() for method in METHODS}

    def tell() -> None:
        listen(Reply(state="answering", said=dict(said)))

    # The shortest prompt first: its answer begins while the longer ones are still being read.
    going = {
        method: stream(loaded, contexts[method], benchmark.format, lambda batch: tell())
        for method in sorted(METHODS, key=lambda method: len(contexts[method]))
    }
    while going:
        for method, written in list(going.items()):
            step = _next(written)
            if isinstance(step, Answer):
                del going[method]
                said[method] = _scored(loaded, benchmark, prompter, ask, contexts[method], step)
            else:
                said[method] = Said(text=step)
            tell()
    return Reply(state="done", said=said)


def _next(written: Generator[str, None, Answer]) -> str | Answer:
    try:
        return next(written)
    except StopIteration as end:
        whole: Answer = end.value
        return whole


def _scored(
    loaded: LoadedModel, benchmark: Benchmark, prompter: Prompter, ask: Ask, context: list[int], found: Answer
) -> Said:
    """A whole answer with its marks; those of right and wrong only where the reference is known."""
    logprobs: list[float] = []
    if benchmark.closed:
        options = [prompter.answer(option) for option in ask.example.options]
        [logprobs] = option_logprobs(loaded, [context], [options])
    row = score(benchmark.format, ask.example, found.text, found.stopped_by, logprobs)
    return Said(
        text=row.response,
        stopped_by=row.stopped_by,
        in_format=row.in_format,
        knows=row.knows if ask.marked else None,
        exact_match=row.exact_match if ask.marked else None,
        logprobs=row.option_logprobs,
    )


def _fits(loaded: LoadedModel, needed: int) -> None:
    limit = run_checks.context_length(loaded)
    if limit is not None and needed > limit:
        raise UserError(
            f"With its worked examples the question needs {needed:,} tokens and {loaded.name} takes {limit:,}: shorten "
            "it."
        )
