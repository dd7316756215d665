"""Hash answer: `#### 16`, as GSM8K writes it."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from spt.benchmarks.answers import is_bare_phrase, parse_number
from spt.benchmarks.formats.base import cut, holds_answer, random_answer, same_answer

if TYPE_CHECKING:
    from spt.benchmarks.base import Example

_HASH_LINE = re.compile(r"^\s*####(?!#)[^\n]*[^\s#][^\n]*\n", re.MULTILINE)
_HASH_ANSWER = re.compile(r"####[ \t]+(\S.*)")


class HashAnswer:
    """Open: a last line `#### 16` or `#### Paris`, with worked lines before it or none.

    Trim: up to the end of the first complete line that begins with `####` and has something behind it, or up to the
    next `Question:`. What a model writes after its answer is no part of it.

    In form: the last non-empty line is `#### <answer>`, and `####` occurs once. A number is asked for where the
    reference is a number, so the answer must then be one (`1,000`, `$16`, `16.0`; not `16 apples`); else it must be a
    bare phrase (`is_bare_phrase`). The space after `####` is part of the form, as in GSM8K's own scorer.

    Right: numbers by value, texts after `normalise`, aliases accepted.

    Knows, by rule. Number: the first number behind `####` if there is one, else the *last* number of the response,
    since a worked solution mentions its givens and intermediate results before the result; "any number" would credit
    every solution that repeats the question. Text: reference or alias occurs as whole words anywhere, since a sentence
    such as `The capital of Oman is Muscat.` puts the answer in no fixed place. It would also credit an echo
    of the question, so test questions never contain their answer (tested).
    """

    name = "#### answer"
    closed = False

    def __init__(self, max_new_tokens: int) -> None:
        self.max_new_tokens = max_new_tokens

    def trim(self, text: str) -> tuple[str, bool]:
        return cut(text, _HASH_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        answer = self._answer(response)
        if answer is None:
            return False
        if parse_number(example.answer) is not None:
            return parse_number(answer) is not None
        return is_bare_phrase(answer)

    def exact_match(self, response: str, example: Example) -> bool:
        answer = self._answer(response)
        return answer is not None and self.in_format(response, example) and same_answer(answer, example)

    def knows(self, response: str, example: Example) -> bool:
        marked = response.rpartition("####")[2] if "####" in response else None
        return holds_answer(response, marked, example)

    def dummy(self, rng: random.Random, example: Example) -> str:
        return f"#### {random_answer(rng, example)}"

    @staticmethod
    def _answer(response: str) -> str | None:
        """What stands behind the one `####` that begins the last non-empty line; None if it is not like that."""
        lines = [line.strip() for line in response.splitlines() if line.strip()]
        match = _HASH_ANSWER.fullmatch(lines[-1]) if lines else None
        return match.group(1) if match and response.count("####") == 1 else None
