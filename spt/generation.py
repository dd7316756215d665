"""Greedy answers, batched, left-padded and cached, through `generate` of transformers.

An answer ends at EOS or end of turn, where the format's rule calls it complete, where it repeats itself, or at the
length limit; which of them is kept (`stopped_by`), since a base model that never stops is a finding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from spt.batching import left_pad, prefill, shared_prefix
from spt.benchmarks.formats import AnswerFormat
from spt.metrics import StoppedBy
from spt.models import LoadedModel

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


class _AnswerEnds(StoppingCriteria):
    """Ends a row once its text is complete by the format's rule, or loops."""

    def __init__(self, tokenizer: Any, answer_format: AnswerFormat, prompt_width: int) -> None:
        self.tokenizer, self.format, self.prompt_width = tokenizer, answer_format, prompt_width

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        texts = self.tokenizer.batch_decode(input_ids[:, self.prompt_width :], skip_special_tokens=True)
        ended = [self.format.trim(text)[1] or loops(text) for text in texts]
        return torch.tensor(ended, device=input_ids.device)


@torch.inference_mode()
def generate(loaded: LoadedModel, contexts: Sequence[Sequence[int]], answer_format: AnswerFormat) -> list[Answer]:
    """Answer one batch of contexts (lists of token ids, virtual ones included), in their order."""
    prefix = shared_prefix(loaded, contexts, spare=answer_format.max_new_tokens)
    ids, mask = left_pad(contexts, loaded.device, prefix)
    width = ids.shape[1]
    cached = {"cache": prefill(loaded, contexts[0][:prefix], len(contexts))} if prefix else {}
    decoder: Any = loaded.model  # the library types a model's attributes as tensors
    output = decoder.generate(
        input_ids=ids,
        attention_mask=mask,
        generation_config=greedy_config(loaded, answer_format.max_new_tokens),
        stopping_criteria=StoppingCriteriaList([_AnswerEnds(loaded.tokenizer, answer_format, width)]),
        **cached,
    )
    return [_finish(loaded, row, answer_format) for row in output[:, width:].tolist()]


def _finish(loaded: LoadedModel, row: list[int], answer_format: AnswerFormat) -> Answer:
    end = next((i for i, token in enumerate(row) if token in loaded.eos_ids), None)
    text = str(loaded.tokenizer.decode(row[:end], skip_special_tokens=True))
    kept, complete = answer_format.trim(text)
    if complete:
        return Answer(kept, "rule")
    if loops(text):  # before EOS, with which a row that has ended is padded where it is the pad token too
        return Answer(kept, "loop")
    return Answer(kept, "length" if end is None else "eos")
