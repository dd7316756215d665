"""Boxed answer: `\\boxed{16}`, as MATH writes it."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from spt.benchmarks import mathematics
from spt.benchmarks.answers import numbers_in, parse_number
from spt.benchmarks.formats.base import NEXT_QUESTION

if TYPE_CHECKING:
    from spt.benchmarks.base import Example

_BOX = re.compile(r"\\boxed\s*\{")


class Boxed:
    """Open: a last line that holds `\\boxed{16}`, with worked lines before it or none.

    Trim: up to the end of the first complete line by which a `\\boxed{` is closed, or up to the next `Question:`.

    In form: `\\boxed{` occurs once, its braces close (they may be nested), something stands in it, and nothing but the
    rest of that line follows. What else the line says is free: `so $x = \\boxed{5}$ metres.` is how MATH writes it.

    Right: mathematically equal to the reference (`mathematics.equal`), so `\\boxed{0.5}` is `\\boxed{\\frac{1}{2}}`.
    Knows, by rule: the last complete box if there is one; else, where the reference is a number, the last number of the
    response, and where it is not, the last formula of the response.
    """

    name = "\\boxed{}"
    closed = False

    def __init__(self, max_new_tokens: int) -> None:
        self.max_new_tokens = max_new_tokens

    def trim(self, text: str) -> tuple[str, bool]:
        question = text.find(NEXT_QUESTION)
        if question >= 0:
            text = text[:question]
        lines = [text.find("\n", end) for start, end in _boxes(text) if text[start:end].strip()]
        ends = [line for line in lines if line >= 0]
        return text[: min(ends, default=None)].strip(), bool(ends) or question >= 0

    def in_format(self, response: str, example: Example) -> bool:
        boxes = _boxes(response)
        if len(boxes) != 1 or len(_BOX.findall(response)) != 1:
            return False
        (start, end), *_ = boxes
        return bool(response[start:end].strip()) and "\n" not in response[end:].strip()

    def exact_match(self, response: str, example: Example) -> bool:
        return self.in_format(response, example) and self.knows(response, example)

    def knows(self, response: str, example: Example) -> bool:
        accepted = (example.answer, *example.aliases)
        boxed = boxed_answer(response)
        if boxed is not None:
            return any(mathematics.equal(boxed, answer) for answer in accepted)
        reference = parse_number(example.answer)
        if reference is not None:
            return numbers_in(response)[-1:] == [reference]
        return any(mathematics.ends_with(response, answer) for answer in accepted)

    def dummy(self, rng: random.Random, example: Example) -> str:
        return f"\\boxed{{{rng.randrange(1, 1000)}}}"


def boxed_answer(text: str) -> str | None:
    """What stands in the last complete, non-empty box; None without one."""
    found = [text[start:end].strip() for start, end in _boxes(text) if text[start:end].strip()]
    return found[-1] if found else None


def _boxes(text: str) -> list[tuple[int, int]]:
    """Where the contents of the complete boxes begin and end. A box that is never closed is none."""
    boxes = []
    for match in _BOX.finditer(text):
        depth, i = 1, match.end()
        while i < len(text) and depth:
            if text[i] == "\\":
                i += 1  # `\{` and `\}` are signs, not braces
            elif text[i] in "{}":
                depth += 1 if text[i] == "{" else -1
            i += 1
        if not depth:
            boxes.append((match.end(), i - 1))
    return boxes
