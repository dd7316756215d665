"""Every question with the answers of several runs beside each other: filtered, searched, paged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from spt.compare import LETTERS, Mark, Side, four_ways, mark, shared_items
from spt.metrics import Prediction
from spt.spec import Method
from spt.ui.answers import _question, _verdict
from spt.ui.compared import badge, mark_html
from spt.ui.difference import marked
from spt.ui.text import colour, esc, long_text
from spt.view import count

PAGE = 10  # items a page
FOUR = "four"  # the view of four columns, beside those of the methods


@dataclass(frozen=True)
class Column:
    """One answer of each item: whose it is, and how it looks."""

    heading: str  # HTML
    tone: str
    answers: Mapping[str, Prediction]


@dataclass(frozen=True, eq=False)
class Item:
    """One question, with the answer of each column that has one."""

    shown: Prediction
    answers: tuple[Prediction | None, ...]

    @cached_property
    def text(self) -> str:
        """All that can be searched for, in small letters."""
        row, said = self.shown, (answer.response for answer in self.answers if answer)
        return "\n".join((row.question, *row.options, row.topic, row.target, *said)).casefold()

    @property
    def given(self) -> list[Prediction]:
        return [answer for answer in self.answers if answer]


def _differs(item: Item) -> bool:
    return len({(row.knows, row.in_format, row.exact_match) for row in item.given}) > 1


@dataclass(frozen=True)
class Filter:
    label: str
    meaning: str
    keep: Callable[[Item], bool]


FILTERS: dict[str, Filter] = {
    "all": Filter("All", "Every question that any of the runs has answered.", lambda item: True),
    "differ": Filter("Marks differ", "The runs are not alike in being right, in format, or exact.", _differs),
    "one": Filter(
        "One right only",
        "Exactly one run is right, in the form or not.",
        lambda item: len(item.given) > 1 and sum(row.knows for row in item.given) == 1,
    ),
    "right": Filter("All right", "Every run is right, in the form or not.", lambda i: all(r.knows for r in i.given)),
    "wrong": Filter("All wrong", "No run is right.", lambda item: not any(row.knows for row in item.given)),
    "some": Filter(
        "Not answered by all", "Only some of the runs have answered.", lambda item: len(item.given) < len(item.answers)
    ),
}


def by_method(sides: Sequence[Side], labels: Sequence[str], method: Method) -> list[Column]:
    """A column for each run."""
    return [
        Column(f"{badge(LETTERS[i])} {esc(label)}", f"run-{LETTERS[i].lower()}", side.answers.get(method, {}))
        for i, (side, label) in enumerate(zip(sides, labels, strict=True))
    ]


def by_way(base: Side, post: Side) -> list[Column]:
    """The four columns, of the questions that both models answered."""
    items = shared_items(base, post)
    return [
        Column(esc(way.title), colour(way.method), {name: row for name, row in way.answers.items() if name in items})
        for way in four_ways(base, post)
    ]


def join(columns: Sequence[Column]) -> list[Item]:
    """Items in the order of the first column that has them."""
    names = dict.fromkeys(name for column in columns for name in column.answers)
    rows = [tuple(column.answers.get(name) for column in columns) for name in names]
    return [Item(next(row for row in answers if row), answers) for answers in rows]


@dataclass(frozen=True)
class Choice:
    """What a reader asks to see of the items."""

    filter: str = "all"
    marks: tuple[tuple[int, Mark], ...] = ()  # column and mark, of the four ways
    search: str = ""
    page: int = 1


@dataclass(frozen=True)
class Found:
    """What a choice comes to."""

    items: Sequence[Item]
    first: int  # number of the first one, from 1
    page: int
    pages: int
    kept: int
    counts: Mapping[str, int]  # by filter, of what the search found

    @property
    def where(self) -> str:
        last = self.first + len(self.items) - 1
        return f"page {self.page} of {self.pages} · {self.first:,}–{last:,} of {self.kept:,}"


def choose(items: Sequence[Item], choice: Choice, four: bool) -> Found:
    """Search, then filter: by the marks of the four ways, or by one of FILTERS."""
    words = choice.search.casefold().split()
    matching = [item for item in items if all(word in item.text for word in words)] if words else list(items)
    if four:
        kept = [item for item in matching if all(_marked(item.answers[at], wanted) for at, wanted in choice.marks)]
        counts: dict[str, int] = {}
    else:
        kept = [item for item in matching if FILTERS[choice.filter].keep(item)]
        counts = {name: sum(map(each.keep, matching)) for name, each in FILTERS.items()}
    pages = max(1, -(-len(kept) // PAGE))
    page = min(max(1, choice.page), pages)
    first = (page - 1) * PAGE
    return Found(kept[first : first + PAGE], first + 1, page, pages, len(kept), counts)


def _marked(row: Prediction | None, wanted: Mark) -> bool:
    return row is not None and mark(row) == wanted


def choices(found: Found, chosen: str) -> list[tuple[str, str]]:
    """The filters with how many items each keeps; the last only where runs have not answered the same."""
    return [
        (f"{each.label} · {found.counts.get(name, 0):,}", name)
        for name, each in FILTERS.items()
        if name != "some" or found.counts.get(name) or name == chosen
    ]


def html(found: Found, columns: Sequence[Column], choice: Choice, four: bool) -> str:
    """One page of questions."""
    meaning = FILTERS[choice.filter].meaning if not four else ""
    if four and choice.marks:
        meaning = "Questions with every mark that is pressed above."
    if not found.items:
        search = f" with “{choice.search.strip()}”" if choice.search.strip() else ""
        return f'<p class="note">{esc(meaning)} <b>No question{esc(search)}.</b></p>'
    cards = "".join(_item(item, found.first + i, columns, four) for i, item in enumerate(found.items))
    return (
        f'<p class="note">{esc(meaning)} <b>{count(found.kept, "question")}</b> '
        f'<span class="differs">Dotted words</span> are not in the reference.</p>{cards}'
    )


def _item(item: Item, number: int, columns: Sequence[Column], four: bool) -> str:
    replies = []
    for column, row in zip(columns, item.answers, strict=True):
        body = '<p class="answer-text empty">not answered</p>'
        if row:
            verdict = f'<span class="marks">{mark_html(mark(row))}</span>' if four else _verdict(row)
            body = f"{long_text(row.response, html=partial(marked, reference=row.target))}{verdict}"
        hit = " hit" if row and row.exact_match else ""
        replies.append(f'<div class="reply {column.tone}{hit}"><h5>{column.heading}</h5>{body}</div>')
    shown = item.shown
    head = _question(shown.question, shown.options, shown.target, shown.topic)
    wide = "wide" if len(columns) > 3 else ""
    return (
        f'<article class="exhibit" aria-label="Question {number}">{head}'
        f'<div class="replies {wide}" style="--columns:{len(columns)}">{"".join(replies)}</div></article>'
    )
