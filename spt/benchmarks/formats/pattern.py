"""The user's own form: a template for targets and a regular expression for answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import regex

from spt.benchmarks.formats.base import NEXT_QUESTION, WORDS, holds_answer, random_answer, same_answer
from spt.spec import UserError

if TYPE_CHECKING:
    from spt.benchmarks.base import Example

SECONDS = 0.1  # for one text; an expression that takes longer backtracks without end, and counts as no match
PATIENCE = 20  # times a run bears that before it is ended
MARK = "{answer}"


class Pattern:
    """Open: what a regular expression says; its group 1 (or, without groups, all of it) is the answer.

    Trim: up to the end of the first complete line with which the expression is satisfied, or up to the next
    `Question:`. In form: the expression matches the whole answer (`whole`), or somewhere in it. Right: the answer found
    equals the reference, numbers by value. Knows, by rule: as for `#### answer`, the answer found being the marked one.

    `pool` are targets of the benchmark; the control `valid-format` draws from them where neither a word nor a number
    fits the expression.
    """

    name = "pattern"
    closed = False

    def __init__(
        self,
        pattern: str,
        template: str = MARK,
        max_new_tokens: int = 64,
        whole: bool = True,
        which: int = 0,
        pool: Sequence[str] = (),
    ) -> None:
        """`which` of several matches is the answer, -1 for the last. Raises UserError for a pattern that is none."""
        try:
            self.expression = regex.compile(pattern)
        except (regex.error, RecursionError, OverflowError) as error:
            raise UserError(f"--pattern {pattern!r} is no regular expression: {error}.") from None
        self.template, self.max_new_tokens = template, max_new_tokens
        self.whole, self.which, self.pool = whole, which, tuple(pool)
        self.slow = 0

    def trim(self, text: str) -> tuple[str, bool]:
        question = text.find(NEXT_QUESTION)
        text = (text[:question] if question >= 0 else text).lstrip()
        end = text.find("\n")
        while end >= 0:
            kept = text[:end].strip()
            if kept and self.find(kept) is not None:
                return kept, True
            end = text.find("\n", end + 1)
        return text.strip(), question >= 0

    def in_format(self, response: str, example: Example) -> bool:
        return self.find(response) is not None

    def exact_match(self, response: str, example: Example) -> bool:
        found = self.find(response)
        return found is not None and same_answer(found, example) and self.knows(response, example)

    def knows(self, response: str, example: Example) -> bool:
        return holds_answer(response, self.find(response), example)

    def dummy(self, rng: random.Random, example: Example) -> str:
        for answer in (random_answer(rng, example), rng.choice(WORDS), str(rng.randrange(1, 1000))):
            target = self.template.replace(MARK, answer)
            if self.in_format(target, example):
                return target
        return rng.choice(self.pool)

    def find(self, response: str) -> str | None:
        """The answer as the expression finds it; None where it does not match, or takes too long."""
        try:
            if self.whole:
                match = self.expression.fullmatch(response, timeout=SECONDS)
            else:
                matches = list(self.expression.finditer(response, timeout=SECONDS))
                match = matches[self.which] if matches else None
        except IndexError:
            return None
        except TimeoutError:
            self.slow += 1
            if self.slow >= PATIENCE:
                raise UserError(
                    f"The pattern {self.expression.pattern!r} takes too long on the model's answers: write it without "
                    "repetitions of choices such as (a|aa)+."
                ) from None
            return None
        if match is None:
            return None
        groups = [group for group in match.groups() if group]
        answer = groups[0] if groups else match.group()
        return answer.strip() or None
