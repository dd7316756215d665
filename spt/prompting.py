"""From an example and a method to token ids. The only place that builds them; the text is `benchmarks/layout.py`'s.

Without a chat template:
    zero_shot     [BOS] instruction ⏎⏎ Question: … Answer:
    few_shot      [BOS] instruction ⏎⏎ Question: … Answer: target ⏎⏎ … Question: … Answer:
    soft_prompt   [BOS] [S] Question: … Answer:                        S takes the place of the instruction
With it, instruction, S and question stand in the user's turn, worked examples are earlier turns, and the answer is the
assistant's. Context and target are tokenised apart, so that the boundary is the same in tuning, ranking and decoding.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spt.benchmarks.base import Benchmark, Example
from spt.spec import Method, UserError

if TYPE_CHECKING:  # seconds, and `spt.preflight` has no time for them
    from transformers import PreTrainedTokenizerBase

# Stand for S and for an answer while the chat template is rendered; invisible separators, which no text has.
SOFT_PROMPT_MARK = "\u2063spt\u2063"
ANSWER_MARK = "\u2063answer\u2063"


@dataclass(frozen=True)
class Prompter:
    """Builds contexts and targets for one model, benchmark and run."""

    tokenizer: PreTrainedTokenizerBase
    benchmark: Benchmark
    chat: bool
    shots: tuple[Example, ...]
    eos_ids: tuple[int, ...]
    virtual_ids: Mapping[Method, tuple[int, ...]] = field(default_factory=dict)  # of each soft prompt, by arm

    def context(self, example: Example, method: Method) -> list[int]:
        """Token ids up to where the answer begins."""
        ids = self._chat(example, method) if self.chat else self._plain(example, method)
        bos = self.tokenizer.bos_token_id
        if bos is not None and ids[:2] == [bos, bos]:
            raise AssertionError("a prompt begins with two BOS tokens")
        return ids

    def target(self, text: str) -> list[int]:
        """Token ids of an answer and of the token that ends it: end of turn in a chat, else EOS."""
        return [*self.answer(text), self._end_of_answer()]

    def answer(self, text: str) -> list[int]:
        """Token ids of an answer as it stands behind a context, without an end."""
        return self._encode(text if self.chat else f"{self.benchmark.layout.before_answer}{text}")

    def _plain(self, example: Example, method: Method) -> list[int]:
        layout, bos = self.benchmark.layout, self._bos()
        if method in self.virtual_ids:
            return bos + list(self.virtual_ids[method]) + self._encode(layout.prompt(example))
        return bos + self._encode(layout.instruction(self.benchmark) + layout.prompt(example, self._shots(method)))

    def _chat(self, example: Example, method: Method) -> list[int]:
        layout = self.benchmark.layout
        lead = SOFT_PROMPT_MARK if method in self.virtual_ids else layout.instruction(self.benchmark)
        turns: list[str] = []
        for shot in self._shots(method):
            turns += [layout.question(shot), shot.target]
        turns.append(layout.question(example))
        turns[0] = lead + turns[0]
        text = self._render(turns)
        if method not in self.virtual_ids:
            return self._encode(text)
        before, after = text.split(SOFT_PROMPT_MARK)
        return self._encode(before) + list(self.virtual_ids[method]) + self._encode(after)

    def _render(self, turns: Sequence[str], answer_next: bool = True) -> str:
        """Chat template over alternating user and assistant turns, as text with its special tokens."""
        roles = ("user", "assistant")
        messages = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
        # Reasoning models would else think before they answer; templates without the switch ignore it.
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=answer_next, enable_thinking=False
        )
        return str(text)

    def _shots(self, method: Method) -> tuple[Example, ...]:
        return self.shots if method == "few_shot" else ()

    def _bos(self) -> list[int]:
        """BOS where this tokenizer puts one before plain text by itself, else nothing."""
        ids = self.tokenizer("a")["input_ids"]
        bos = self.tokenizer.bos_token_id
        return [bos] if bos is not None and ids[:1] == [bos] else []

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _end_of_answer(self) -> int:
        """In a chat, the first token behind the assistant's text that ends generation; else the tokenizer's EOS."""
        if self.chat:
            rest = self._render(["hello", ANSWER_MARK], answer_next=False).split(ANSWER_MARK)[1]
            for token in self._encode(rest):
                if token in self.eos_ids:
                    return token
        if self.tokenizer.eos_token_id is None:
            raise UserError("This tokenizer names no end-of-text token, so the end of an answer cannot be tuned.")
        return self.tokenizer.eos_token_id


def choose_shots(train: Sequence[Example], count: int, seed: int) -> tuple[Example, ...]:
    """Few-shot examples, drawn from train by the seed. Raises UserError where train has too few rows."""
    if count > len(train):
        raise UserError(f"--shots {count} is not possible: the benchmark has {len(train)} training rows.")
    return tuple(random.Random(f"shots-{seed}").sample(list(train), count))


def choose_items(test: Sequence[Example], count: int) -> tuple[Example, ...]:
    """At most `count` test items: always the same ones in the same order, so that runs can be compared by item."""
    items = list(test)
    random.Random("items").shuffle(items)
    return tuple(items[:count])
