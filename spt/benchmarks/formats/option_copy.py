"""Option copy: `A. Paris`."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from spt.benchmarks.formats.base import FIRST_LINE, cut

if TYPE_CHECKING:
    from spt.benchmarks.base import Example


class OptionCopy:
    """Closed: the answer is one of the listed options, copied with its letter: `A. Paris`.

    Trim: the first non-empty line, or up to the next `Question:`. In form: equal to one of the options, to the letter;
    `A) Paris`, `A`, `Paris` and `A. Paris.` are not. Right: equal to the target.
    """

    name = "option copy"
    closed = True

    def __init__(self, max_new_tokens: int = 24) -> None:
        self.max_new_tokens = max_new_tokens

    def trim(self, text: str) -> tuple[str, bool]:
        return cut(text, FIRST_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        return response in example.options

    def exact_match(self, response: str, example: Example) -> bool:
        return response == example.target and self.in_format(response, example)

    def knows(self, response: str, example: Example) -> bool:
        raise TypeError("closed questions have no rule for knowledge: rank the options by likelihood")

    def dummy(self, rng: random.Random, example: Example) -> str:
        return rng.choice(example.options)
