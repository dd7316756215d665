"""What every answer format has, and what they share: the cut at the end of an answer, and answers without knowledge."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Protocol

from spt.benchmarks.answers import contains_any, equals_any, numbers_in, parse_number

if TYPE_CHECKING:
    from spt.benchmarks.base import Example

NEXT_QUESTION = "Question:"
FIRST_LINE = re.compile(r"\S[^\n]*\n")
# Answers of the control `valid-format`: common words that are in every form and answer nothing in particular.
WORDS = (
    "apple", "basket", "bridge", "button", "candle", "carpet", "castle", "circle", "cloud", "corner", "feather",
    "forest", "garden", "hammer", "harbour", "island", "ladder", "lantern", "meadow", "mirror", "mountain", "needle",
    "orange", "paper", "pencil", "pepper", "pillow", "river", "saddle", "shadow", "silver", "spoon", "summer", "table",
    "thunder", "ticket", "valley", "village", "window", "winter",
)  # fmt: skip


class AnswerFormat(Protocol):
    """One class a form. All checks see the response after `trim`."""

    name: str
    closed: bool
    max_new_tokens: int

    def trim(self, text: str) -> tuple[str, bool]:
        """Cut a raw generation where the answer ends, by this format's one rule for all methods.

        Returns (kept text without surrounding white space, complete); `complete` tells the decoder that nothing
        after this point can matter, so that it may stop. Must be stable: once complete, more text changes nothing.
        """

    def in_format(self, response: str, example: Example) -> bool:
        """In the form, right or not."""

    def exact_match(self, response: str, example: Example) -> bool:
        """Right and in the form."""

    def knows(self, response: str, example: Example) -> bool:
        """Right, in the form or not, by rule (open formats; closed ones rank options by likelihood instead)."""

    def dummy(self, rng: random.Random, example: Example) -> str:
        """A target in the form, whose answer is drawn without knowing the right one (the control `valid-format`)."""


def cut(text: str, last_line: re.Pattern[str]) -> tuple[str, bool]:
    """Cut at the next question or behind the first line that ends an answer, whichever comes first."""
    question = text.find(NEXT_QUESTION)
    line = last_line.search(text)
    ends = [end for end in (question, line.end() if line else -1) if end >= 0]
    return text[: min(ends)].strip() if ends else text.strip(), bool(ends)


def random_answer(rng: random.Random, example: Example) -> str:
    """A number where the reference is one (which of the two is asked for is form), else a common word."""
    return str(rng.randrange(1, 1000)) if parse_number(example.answer) is not None else rng.choice(WORDS)


def same_answer(found: str, example: Example) -> bool:
    """Numbers by value, texts after `normalise`, aliases accepted."""
    reference = parse_number(example.answer)
    if reference is not None and parse_number(found) is not None:
        return parse_number(found) == reference
    return equals_any(found, (example.answer, *example.aliases))


def holds_answer(response: str, marked: str | None, example: Example) -> bool:
    """Knowledge by rule. Number: the first one in `marked`, where the answer is marked as such and holds one, else the
    *last* number of the response. Text: reference or alias occurs as whole words anywhere."""
    reference = parse_number(example.answer)
    if reference is None:
        return contains_any(response, (example.answer, *example.aliases))
    behind = numbers_in(marked) if marked else []
    return behind[0] == reference if behind else numbers_in(response)[-1:] == [reference]
