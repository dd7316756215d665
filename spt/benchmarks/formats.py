"""Answer formats: how a target looks, where an answer ends, whether it is in form, and whether it is right.

| format      | target          | answer ends                            | in form                                    |
|-------------|-----------------|----------------------------------------|--------------------------------------------|
| OptionCopy  | `A. Paris`      | with the first non-empty line          | equal to one of the options shown          |
| HashAnswer  | `...\\n#### 16`  | with the first complete `#### ` line   | last line `#### <answer>`, the only one    |
| ShortPhrase | `Marie Curie`   | with the first non-empty line          | one line, a bare phrase                    |

All formats also end an answer at the next `Question:`. A line is complete once its newline is there.
Two things hold for every response: exact match implies in form; in open formats exact match implies knowledge.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from spt.benchmarks.answers import contains_any, equals_any, is_bare_phrase, numbers_in, parse_number

if TYPE_CHECKING:
    from spt.benchmarks.base import Example

_NEXT_QUESTION = "Question:"
_FIRST_LINE = re.compile(r"\S[^\n]*\n")
_HASH_LINE = re.compile(r"^\s*####(?!#)[^\n]*[^\s#][^\n]*\n", re.MULTILINE)
_HASH_ANSWER = re.compile(r"####[ \t]+(\S.*)")


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


class OptionCopy:
    """Closed: the answer is one of the listed options, copied with its letter: `A. Paris`.

    Trim: the first non-empty line, or up to the next `Question:`. In form: equal to one of the options, to the letter;
    `A) Paris`, `A`, `Paris` and `A. Paris.` are not. Right: equal to the target.
    """

    name = "option copy"
    closed = True
    max_new_tokens = 24

    def trim(self, text: str) -> tuple[str, bool]:
        return _cut(text, _FIRST_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        return response in example.options

    def exact_match(self, response: str, example: Example) -> bool:
        return response == example.target and self.in_format(response, example)

    def knows(self, response: str, example: Example) -> bool:
        raise TypeError("closed questions have no rule for knowledge: rank the options by likelihood")


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
        return _cut(text, _HASH_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        answer = self._answer(response)
        if answer is None:
            return False
        if parse_number(example.answer) is not None:
            return parse_number(answer) is not None
        return is_bare_phrase(answer)

    def exact_match(self, response: str, example: Example) -> bool:
        answer = self._answer(response)
        if answer is None or not self.in_format(response, example):
            return False
        reference = parse_number(example.answer)
        if reference is not None:
            return parse_number(answer) == reference
        return equals_any(answer, (example.answer, *example.aliases))

    def knows(self, response: str, example: Example) -> bool:
        reference = parse_number(example.answer)
        if reference is None:
            return contains_any(response, (example.answer, *example.aliases))
        behind = numbers_in(response.rpartition("####")[2]) if "####" in response else []
        if behind:
            return behind[0] == reference
        return numbers_in(response)[-1:] == [reference]

    @staticmethod
    def _answer(response: str) -> str | None:
        """What stands behind the one `####` that begins the last non-empty line; None if it is not like that."""
        lines = [line.strip() for line in response.splitlines() if line.strip()]
        match = _HASH_ANSWER.fullmatch(lines[-1]) if lines else None
        return match.group(1) if match and response.count("####") == 1 else None


class ShortPhrase:
    """Open: the answer is a bare phrase on one line: `Marie Curie`.

    Trim: the first non-empty line, or up to the next `Question:`. In form: a bare phrase, at most eight words, no
    sentence, mark-up, option letter, explanation or closing full stop (`is_bare_phrase` has the rule and its limits).
    Right: equal to the answer or an alias after `normalise`. Knows, by rule: answer or alias occurs as whole words.
    """

    name = "short phrase"
    closed = False
    max_new_tokens = 24

    def trim(self, text: str) -> tuple[str, bool]:
        return _cut(text, _FIRST_LINE)

    def in_format(self, response: str, example: Example) -> bool:
        return is_bare_phrase(response)

    def exact_match(self, response: str, example: Example) -> bool:
        return self.in_format(response, example) and equals_any(response, (example.answer, *example.aliases))

    def knows(self, response: str, example: Example) -> bool:
        return contains_any(response, (example.answer, *example.aliases))


def _cut(text: str, last_line: re.Pattern[str]) -> tuple[str, bool]:
    """Cut at the next question or behind the first line that ends an answer, whichever comes first."""
    question = text.find(_NEXT_QUESTION)
    line = last_line.search(text)
    ends = [end for end in (question, line.end() if line else -1) if end >= 0]
    return text[: min(ends)].strip() if ends else text.strip(), bool(ends)
