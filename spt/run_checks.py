"""What is refused before a run begins, or goes on: another model, other rows, prompts that are too long."""

from __future__ import annotations

from collections.abc import Sequence

from spt import events
from spt.benchmarks.base import Benchmark, Example, Split
from spt.evaluation import Evaluator
from spt.events import ResumeState
from spt.models import LoadedModel
from spt.spec import METHODS, RunSpec, UserError


def same_model(loaded: LoadedModel, resume: ResumeState) -> None:
    """Raise UserError where the run began with another model: its vectors and answers cannot be gone on with."""
    for event in resume.events:
        if isinstance(event, events.ModelLoaded) and (event.model, event.revision) != (loaded.name, loaded.revision):
            raise UserError(
                f"{loaded.name} is at {loaded.revision or 'no revision'} now, and this run began at "
                f"{event.revision or 'no revision'}: run it anew (--again), or bring that model back."
            )


def same_rows(benchmark: Benchmark, split: Split, resume: ResumeState) -> None:
    """Raise UserError where a file of questions was changed since the run began."""
    for event in resume.events:
        if isinstance(event, events.DataLoaded) and event.fingerprint not in ("", split.fingerprint):
            raise UserError(
                f"The rows of {benchmark.name} are not those this run began with: run it anew (--again), or bring them "
                "back."
            )


def uses_chat(spec: RunSpec, loaded: LoadedModel) -> bool:
    """Whether prompts go through the chat template: as asked, `auto` = for post-trained models."""
    if spec.chat_template == "auto":
        return loaded.post_trained
    if spec.chat_template == "on" and not loaded.tokenizer.chat_template:
        raise UserError(f"{loaded.name} has no chat template; use --chat-template off.")
    return spec.chat_template == "on"


def context_length(loaded: LoadedModel) -> int | None:
    """How many tokens the model takes, prompt and answer together; None where its config does not say."""
    limit: int | None = getattr(loaded.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    return limit


def takes_lora(loaded: LoadedModel) -> None:
    """Raise UserError where LoRA finds no place in this model: better now than after all other methods."""
    from spt import lora  # PEFT: seconds, for the runs that need it

    lora.attach(loaded.model, seed=0)
    lora.remove(loaded.model)


def length(loaded: LoadedModel, evaluator: Evaluator, items: Sequence[Example]) -> None:
    """Raise UserError where the longest prompt and its answer do not fit the model's context."""
    limit = context_length(loaded)
    for method in METHODS:
        longest = max(len(evaluator.prompter.context(item, method)) for item in items)
        needed = longest + evaluator.benchmark.format.max_new_tokens
        if limit is not None and needed > limit:
            raise UserError(
                f"The {method} prompt of {evaluator.benchmark.name} needs {needed} tokens and {loaded.name} takes "
                f"{limit}: lower --shots or --virtual-tokens, or choose another model."
            )
