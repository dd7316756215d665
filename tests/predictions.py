"""Answers with chosen outcomes, for the tests of what is made of them."""

from __future__ import annotations

from itertools import cycle

from spt.analysis import Analysis
from spt.findings import Finding
from spt.metrics import Prediction
from spt.spec import RunSpec

OPTIONS = ("Rome", "Oslo", "Bern", "Riga")
ARMS = RunSpec(seeds=3, control=("shuffled", "valid-format")).arms
Rows = list[Prediction]


def row(number: int, knows: bool, in_format: bool, letter: str = "", exact: bool | None = None) -> Prediction:
    """An item; closed where the answer has a letter. The targets of closed items go through A to D."""
    return Prediction(
        id=f"i{number}",
        question="q",
        options=OPTIONS if letter else (),
        target=f"{'ABCD'[number % 4]}. x",
        answer="x",
        response=f"{letter}. x",
        in_format=in_format,
        knows=knows,
        exact_match=knows and in_format if exact is None else exact,
        stopped_by="eos",
    )


def rows(n: int, right: int, formed: int, start: int = 0) -> Rows:
    """Open answers: from `start` on `right` items are right (around the end); the first `formed` are in the form."""
    return [row(i, knows=(i - start) % n < right, in_format=i < formed) for i in range(n)]


def closed_rows(n: int, known: int, letters: str, formed: int | None = None) -> Rows:
    """Closed answers whose letters repeat `letters`; exact match where the letter is the target's."""
    formed = n if formed is None else formed
    return [
        row(i, i < known, i < formed, letter, exact=i < formed and letter == "ABCD"[i % 4])
        for i, letter in zip(range(n), cycle(letters), strict=False)
    ]


def said(analysis: Analysis, kind: str) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.kind == kind]


def plain(finding: Finding) -> str:
    return finding.text.replace("\u202f", " ")
