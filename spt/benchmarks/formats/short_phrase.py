"""Short phrase: `Marie Curie`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from spt.benchmarks.answers import contains_any, equals_any, is_bare_phrase
from spt.benchmarks.formats.base import FIRST_LINE, WORDS, cut

if TYPE_CHECKING:
    from spt.benchmarks.base import Example


class ShortPhrase:
    """Open: the answer is a bare phrase on one line: `Marie Curie`.

    Trim: the first non-empty line, or up to the next `Question:`. In form: a bare phrase, at most eight words, no
    sentence, mark-up, option letter, explanation or closing full stop (`is_bare_phrase` has the rule and its limits).
    Right: equal to the answer or an alias after `normalise`. Knows, by rule: answer or alias occurs as whole words.
    """

    name = "short phrase"
    closed = False

    def __init__(self, max_new_tokens: int = 24) -> None:
        self.max_new_tokens = max_new_tokens

    def trim(self, text: str) -> tuple[str, bool]:
        return cut(text, FIRST_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        return is_bare_phrase(response)

    def exact_match(self, response: str, example: Example) -> bool:
        return self.in_format(response, example) and equals_any(response, (example.answer, *example.aliases))

    def knows(self, response: str, example: Example) -> bool:
        return contains_any(response, (example.answer, *example.aliases))

    def dummy(self, rng: random.Random, example: Example) -> str:
        return rng.choice(WORDS)
