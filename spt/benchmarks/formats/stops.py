"""Stop strings of an lm-evaluation-harness task in place of a format's own end of an answer."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spt.benchmarks.formats.base import AnswerFormat

if TYPE_CHECKING:
    from spt.benchmarks.base import Example


class Stops:
    """A form whose answers end at the first of some strings, which is cut off; all else is the form's.

    White space before the answer is passed over first: else an answer that begins on the next line would be empty
    where the task stops at a newline.
    """

    def __init__(self, form: AnswerFormat, stops: Sequence[str]) -> None:
        self.form, self.stops = form, tuple(stop for stop in stops if stop)
        self.name, self.closed, self.max_new_tokens = form.name, form.closed, form.max_new_tokens

    def trim(self, text: str) -> tuple[str, bool]:
        text = text.lstrip()
        ends = [end for end in map(text.find, self.stops) if end >= 0]
        return (text[: min(ends)] if ends else text).strip(), bool(ends)

    def in_format(self, response: str, example: Example) -> bool:
        return self.form.in_format(response, example)

    def exact_match(self, response: str, example: Example) -> bool:
        return self.form.exact_match(response, example)

    def knows(self, response: str, example: Example) -> bool:
        return self.form.knows(response, example)

    def dummy(self, rng: random.Random, example: Example) -> str:
        return self.form.dummy(rng, example)
