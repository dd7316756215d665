"""Text and number comparison shared by the answer formats. Pure functions, no state."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal

_NUMBER = r"[-+−]?[$€£]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?![0-9])"
_WHOLE_NUMBER = re.compile(_NUMBER + "%?")
# Not inside a word (`x2`), nor the digits behind a decimal point. `48-16` holds 48 and 16, not -16.
_NUMBER_IN_TEXT = re.compile(r"(?<![A-Za-z0-9])(?<![0-9]\.)" + _NUMBER)

# Letters that Unicode does not decompose into a base letter and an accent.
_UNDECOMPOSED = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})

MAX_PHRASE_WORDS = 8
# What makes a text more than a bare phrase. None of these looks at the reference answer.
_NOT_BARE = tuple(
    re.compile(pattern)
    for pattern in (
        r"[*`#<>{}\[\]|\\;=()]|^_|_$",  # mark-up, LaTeX, calculations, remarks in brackets
        r"""^["'“‘«]|["”»]$""",  # quotation marks around the answer
        r"(?:[!?…]|(?<!\.[A-Z])(?<!\b[JS]r)\.)$",  # end of a sentence; `D.C.`, `Jr.` are not one
        r"^[A-Ea-e][.):]\s*(?![A-Z]\.)\S",  # option letter; `C. S. Lewis` is not one
        r"(?i)^(?:(?:the|my|final|correct|right)\s+)*answer\b",  # `The answer`, `Answer: Paris`
        r"(?i)^(?:it|that|this|he|she|they|i|we)(?:['’](?:s|m|re|d)\b|\s+(?:think|believe|guess|know|would)\b)",
        r"(?i)^(?:yes|no|sure|well|okay|ok|certainly),",
        r"\b(?:is|are|was|were|has|have|means|because)\b",  # lower case only: a sentence, not a title
        r"\bor\b|\s[-–—]\s|,\s+[a-z]",  # a second answer or an explanation: `Paris, which ...`
    )
)


def normalise(text: str) -> str:
    """Fold case, accents, punctuation, white space and articles away, as SQuAD scoring does, with three repairs.

    Accents count as nothing (`Bogotá` = `Bogota`). Only apostrophes, full stops and the comma of `1,000` vanish; other
    marks part words, so that `Port-au-Prince` = `Port au Prince` and `\\boxed{Paris}` holds the word `Paris`; the point
    in `3.14` stays. `a` and `an` fall only at the beginning, so that `Vitamin A` does not become `vitamin` and match
    every vitamin.
    """
    folded = unicodedata.normalize("NFKD", text).casefold().translate(_UNDECOMPOSED)
    out: list[str] = []
    for i, char in enumerate(folded):
        kind = unicodedata.category(char)
        between_digits = folded[i - 1 : i].isdigit() and folded[i + 1 : i + 2].isdigit()
        if kind == "Mn" or char in "'’." or (char == "," and between_digits):
            out.append(char if char == "." and between_digits else "")
        else:
            out.append(" " if kind[0] in "PS" else char)
    words = [word for word in "".join(out).split() if word != "the"]
    if len(words) > 1 and words[0] in ("a", "an"):
        words = words[1:]
    return " ".join(words)


def equals_any(text: str, accepted: Iterable[str]) -> bool:
    """Whether the normalised text is one of the accepted answers. An empty text equals nothing."""
    found = normalise(text)
    return bool(found) and found in {normalise(answer) for answer in accepted}


def contains_any(text: str, accepted: Iterable[str]) -> bool:
    """Whether an accepted answer occurs in the text as whole words, after normalisation of both."""
    haystack = f" {normalise(text)} "
    return any(f" {answer} " in haystack for answer in map(normalise, accepted) if answer)


def parse_number(text: str) -> Decimal | None:
    """The value of a text that is one number: `1,000`, `$16`, `16.0`, `-3`, `50%`. None for anything else."""
    return _value(text.removesuffix("%")) if _WHOLE_NUMBER.fullmatch(text) else None


def numbers_in(text: str) -> list[Decimal]:
    """All numbers in a text, in order."""
    return [_value(match) for match in _NUMBER_IN_TEXT.findall(text)]


def is_bare_phrase(text: str) -> bool:
    """Whether a text is an answer and nothing else: one line of one to eight words that is not a sentence.

    Refused: mark-up and brackets, quotation marks around it, a closing `.`, `!` or `?` (initials as in `D.C.` may
    stay), an option letter, an opening such as `The answer` or `It's`, a lower-case `is`, `was`, ... (a sentence),
    `or`, a dash or a comma before a lower-case word (a second answer or an explanation). The rule errs towards
    refusing: a title such as `Life is Beautiful` would fail, and no benchmark here has such an answer (tested).
    """
    if len(text.splitlines()) != 1 or text != text.strip() or not any(char.isalnum() for char in text):
        return False
    return len(text.split()) <= MAX_PHRASE_WORDS and not any(pattern.search(text) for pattern in _NOT_BARE)


def _value(number: str) -> Decimal:
    return Decimal(number.replace("−", "-").translate(str.maketrans("", "", "$€£,+")))
