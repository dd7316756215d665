"""What of an answer is not in the reference, word by word: those words get a dotted line and a quieter ink."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import groupby

from spt.ui.text import esc

MOST = 400  # words; a longer answer is shown plain, since nobody reads marks in it and comparing takes long
_WORD = re.compile(r"\S+|\s+")
_AROUND = ".,;:!?\"'“”‘’()[]"


def _key(word: str) -> str:
    """A word as it is compared: `Muscat.` is `muscat`; signs that stand alone are themselves."""
    return word.strip(_AROUND).casefold() or word


def _kept(words: Sequence[str], reference: Sequence[str]) -> list[bool]:
    """Which words the reference has, in its order."""
    kept = [False] * len(words)
    matcher = SequenceMatcher(None, [_key(w) for w in words], [_key(w) for w in reference], autojunk=False)
    for at, _, size in matcher.get_matching_blocks():
        kept[at : at + size] = [True] * size
    return kept


def marked(text: str, reference: str) -> str:
    """`text` as HTML, with what `reference` does not have in `<span class="differs">`."""
    pieces = _WORD.findall(text)
    words, wanted = text.split(), reference.split()
    if len(words) > MOST or len(wanted) > MOST:
        return esc(text)
    kept = iter(_kept(words, wanted))
    # A space between two words that differ belongs to them, so that the line below is one.
    differs = [None if piece.isspace() else not next(kept) for piece in pieces]
    for index, value in enumerate(differs):
        if value is None:
            around = differs[max(0, index - 1) : index + 2]
            differs[index] = "\n" not in pieces[index] and len(around) == 3 and around[0] is True and around[2] is True
    parts = []
    for different, group in groupby(zip(differs, pieces, strict=True), key=lambda pair: pair[0]):
        piece = esc("".join(text for _, text in group))
        parts.append(f'<span class="differs">{piece}</span>' if different else piece)
    return "".join(parts)
