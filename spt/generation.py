"""Greedy answers, batched, left-padded and cached.

An answer ends at EOS or end of turn, where the format's rule calls it complete, where it repeats itself, or at the
length limit; which of them is kept (`stopped_by`), since a base model that never stops is a finding.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from spt.batching import expandable, left_pad, positions, prefill, shared_prefix
from spt.benchmarks.formats import AnswerFormat
from spt.metrics import StoppedBy
from spt.models import LoadedModel
from spt.ticker import Decoding, Listen

REPEATS = 3  # an answer whose last lines are this many equal ones is looping


@dataclass(frozen=True)
class Answer:
    """A generated answer after the format's stop-and-trim rule."""

    text: str
    stopped_by: StoppedBy


def loops(text: str) -> bool:
    """Whether the last complete lines are `REPEATS` times the same one."""
    lines = [line.strip() for line in text.split("\n")[:-1] if line.strip()]
    return len(lines) >= REPEATS and len(set(lines[-REPEATS:])) == 1


def greedy_config(loaded: LoadedModel, max_new_tokens: int) -> GenerationConfig:
    """Plain greedy decoding. The model's own generation_config (sampling, repetition penalty) is left out: a penalty
    would index past the vocabulary at virtual ids, and the score would not be greedy."""
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        eos_token_id=list(loaded.eos_ids),
        pad_token_id=loaded.pad_id,
    )


@torch.inference_mode()
def generate(
    loaded: LoadedModel,
    contexts: Sequence[Sequence[int]],
    answer_format: AnswerFormat,
    listen: Listen = lambda batch: None,
) -> list[Answer]:
    """Answer one batch of contexts (lists of token ids, virtual ones included), in their order.

    `listen` hears after every token where the batch is; what it raises ends the work.
    """
    *_, rows = _decode(loaded, contexts, answer_format, listen)
    return [_finish(loaded, row, answer_format) for row in rows]


@torch.inference_mode()
def stream(
    loaded: LoadedModel, context: Sequence[int], answer_format: AnswerFormat, listen: Listen = lambda batch: None
) -> Generator[str, None, Answer]:
    """One answer as it grows, a token at a time; returns what `generate` gives for this context.

    Models that `generate` of transformers decodes give nothing before their whole answer; `listen` hears of theirs too.
    """
    for (row,) in _decode(loaded, [context], answer_format, listen):
        text = answer_format.trim(str(loaded.tokenizer.decode(row, skip_special_tokens=True)))[0]
        yield text.rstrip("\ufffd")  # the beginning of a character of several tokens
    return _finish(loaded, row, answer_format)


def _decode(
    loaded: LoadedModel, contexts: Sequence[Sequence[int]], answer_format: AnswerFormat, listen: Listen
) -> Iterator[list[list[int]]]:
    """The new token ids of each row, again and again as they grow; the last time they are whole."""
    return (_shrinking if expandable(loaded) else _whole)(loaded, contexts, answer_format, listen)


def _ended(loaded: LoadedModel, row: list[int], answer_format: AnswerFormat) -> bool:
    """Whether nothing that could follow these tokens of an answer matters."""
    text = str(loaded.tokenizer.decode(row, skip_special_tokens=True))
    return row[-1] in loaded.eos_ids or answer_format.trim(text)[1] or loops(text)


def _shrinking(
    loaded: LoadedModel, contexts: Sequence[Sequence[int]], answer_format: AnswerFormat, listen: Listen
) -> Iterator[list[list[int]]]:
    """After every token. Rows that have ended leave the batch, so one long answer does not hold the others."""
    prefix = shared_prefix(loaded, contexts, spare=answer_format.max_new_tokens)
    ids, mask = left_pad(contexts, loaded.device, prefix)
    cache = prefill(loaded, contexts[0][:prefix], len(contexts)) if prefix else None
    answers: list[list[int]] = [[] for _ in contexts]
    active = list(range(len(contexts)))
    step_ids, step_positions = ids[:, prefix:], positions(mask)[:, prefix:]
    while True:
        output = loaded.model(
            input_ids=step_ids,
            attention_mask=mask,
            position_ids=step_positions,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        for row, token in zip(active, output.logits[:, -1].float().argmax(-1).tolist(), strict=True):
            answers[row].append(token)
        yield answers
        tokens = len(answers[active[0]])
        if tokens == answer_format.max_new_tokens:
            return
        going = [i for i, row in enumerate(active) if not _ended(loaded, answers[row], answer_format)]
        listen(Decoding(len(contexts), len(contexts) - len(going), tokens, answer_format.max_new_tokens))
        if not going:
            return
        cache = output.cache
        if len(going) < len(active):
            chosen = torch.tensor(going, device=loaded.device)
            cache.batch_select_indices(chosen)
            mask, active = mask[chosen], [active[i] for i in going]
        mask = torch.cat((mask, mask.new_ones(len(active), 1)), dim=1)
        step_ids = torch.tensor([answers[row][-1:] for row in active], device=loaded.device)
        step_positions = positions(mask)[:, -1:]


class _AnswerEnds(StoppingCriteria):
    """Ends a row once nothing further matters."""

    def __init__(self, loaded: LoadedModel, answer_format: AnswerFormat, prompt_width: int, listen: Listen) -> None:
        self.loaded, self.format, self.prompt_width, self.listen = loaded, answer_format, prompt_width, listen
        self.over: set[int] = set()

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        rows = input_ids[:, self.prompt_width :].tolist()
        ended = [_ended(self.loaded, row, self.format) for row in rows]
        self.over |= {i for i, end in enumerate(ended) if end}  # padding follows, and may not look like an end
        self.listen(Decoding(len(rows), len(self.over), len(rows[0]), self.format.max_new_tokens))
        return torch.tensor(ended, device=input_ids.device)


def _whole(
    loaded: LoadedModel, contexts: Sequence[Sequence[int]], answer_format: AnswerFormat, listen: Listen
) -> Iterator[list[list[int]]]:
    """Once, through `generate` of transformers, where no row can be taken out of the cache (state space, hybrid)."""
    ids, mask = left_pad(contexts, loaded.device)
    width = ids.shape[1]
    decoder: Any = loaded.model  # the library types a model's attributes as tensors
    output = decoder.generate(
        input_ids=ids,
        attention_mask=mask,
        generation_config=greedy_config(loaded, answer_format.max_new_tokens),
        stopping_criteria=StoppingCriteriaList([_AnswerEnds(loaded, answer_format, width, listen)]),
    )
    yield output[:, width:].tolist()


def _finish(loaded: LoadedModel, row: list[int], answer_format: AnswerFormat) -> Answer:
    end = next((i for i, token in enumerate(row) if token in loaded.eos_ids), None)
    text = str(loaded.tokenizer.decode(row[:end], skip_special_tokens=True))
    kept, complete = answer_format.trim(text)
    if complete:
        return Answer(kept, "rule")
    if loops(text):  # before EOS, with which a row that has ended is padded where it is the pad token too
        return Answer(kept, "loop")
    return Answer(kept, "length" if end is None else "eos")
