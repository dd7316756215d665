"""Answer formats: the tables of `format_tables`, and the properties that hold for all formats."""

from __future__ import annotations

import random

import pytest

from spt.benchmarks.answers import contains_any, equals_any, normalise
from spt.benchmarks.base import Example
from spt.benchmarks.formats import AnswerFormat, HashAnswer, Pattern
from spt.spec import UserError
from tests.format_tables import (
    BOXED,
    CURIE,
    FORMATS,
    FOUND,
    HALF,
    HASH,
    OPTION,
    PARIS,
    PARIS_CLOSED,
    PARIS_OPTIONS,
    PHRASE,
    SIXTEEN,
    SIXTEEN_BOXED,
    TABLES,
    TAG,
    UNTIL,
    Row,
)


@pytest.mark.parametrize(
    ("form", "row"),
    [(form, row) for form, rows in TABLES for row in rows],
    ids=lambda value: repr(value.response) if isinstance(value, Row) else value.name,
)
def test_tables(form: AnswerFormat, row: Row) -> None:
    assert form.in_format(row.response, row.example) is row.in_format
    assert form.exact_match(row.response, row.example) is row.exact_match
    if row.knows is not None:
        assert form.knows(row.response, row.example) is row.knows


def test_closed_questions_have_no_rule_for_knowledge() -> None:
    with pytest.raises(TypeError, match="likelihood"):
        OPTION.knows("A. Paris", PARIS_CLOSED)


@pytest.mark.parametrize(
    ("form", "text", "kept", "complete"),
    [
        (OPTION, "", "", False),
        (OPTION, " A. Paris", "A. Paris", False),  # the line may go on
        (OPTION, " A. Paris\n", "A. Paris", True),
        (OPTION, "\n\n A. Paris \r\nBecause", "A. Paris", True),
        (OPTION, "\n \n", "", False),
        (OPTION, "A. Paris Question: What", "A. Paris", True),
        (PHRASE, "Marie Curie\n\nQuestion: Who", "Marie Curie", True),
        (PHRASE, "Question: Who\n", "", True),
        (PHRASE, "Marie Curie Quest", "Marie Curie Quest", False),
        (HASH, "#### Paris", "#### Paris", False),
        (HASH, "#### Paris\n", "#### Paris", True),
        (HASH, " First.\n #### Paris \n#### Rome\n", "First.\n #### Paris", True),
        (HASH, "It is Paris.\nIt lies on the Seine.\n", "It is Paris.\nIt lies on the Seine.", False),
        (HASH, "It is Paris.\n\nQuestion: What", "It is Paris.", True),
        (HASH, "####\nParis\n", "####\nParis", False),
        (HASH, "####16\nmore", "####16", True),
        (HASH, "##### Steps\n#### 16\nmore", "##### Steps\n#### 16", True),
        (HASH, "#### Paris Question: What\n", "#### Paris", True),
        (BOXED, "So $\\boxed{16}$", "So $\\boxed{16}$", False),
        (BOXED, "So $\\boxed{16}$ m.\nMore \\boxed{17}\n", "So $\\boxed{16}$ m.", True),
        (BOXED, "\\boxed{}\n\\boxed{1\n6}\nmore", "\\boxed{}\n\\boxed{1\n6}", True),
        (BOXED, "\\boxed{\\boxed{16}\nmore}\nmore", "\\boxed{\\boxed{16}", True),
        (BOXED, "It is 16.\n\nQuestion: What", "It is 16.", True),
        (TAG, "\n<a>Paris</a> \nmore", "<a>Paris</a>", True),
        (TAG, "It is Paris.\n<a>Paris</a>\n", "It is Paris.\n<a>Paris</a>", False),  # no full match any more
        (TAG, "<a>Paris</a>", "<a>Paris</a>", False),
        (FOUND, "So\n#### 16\n#### 17\n", "So\n#### 16", True),
        (UNTIL, "So\n#### 16\n\nmore", "So\n#### 16", True),
        (UNTIL, "\n\nSo Question: 1", "So", True),
    ],
)
def test_trim(form: AnswerFormat, text: str, kept: str, complete: bool) -> None:
    assert form.trim(text) == (kept, complete)


BOX_PIECES = ("\\boxed{", "{", "}", "\\boxed{16}", "<a>", "</a>", "<a>Paris</a>", "\n\n", "#### 16")
PIECES = ("#", "####", " ", "\n", "\r\n", "16", "Paris", "A. Paris", ".", "Question:", "Quest", "ion:", "é", "\u2028")


def _random_text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES + BOX_PIECES) for _ in range(rng.randrange(12)))


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_trim_is_stable_once_complete(form: AnswerFormat) -> None:
    rng = random.Random(0)
    completed = 0
    for _ in range(3000):
        text = _random_text(rng)
        kept, complete = form.trim(text)
        assert kept == kept.strip()
        assert form.trim(kept)[0] == kept, "a trimmed answer is left as it is"
        if complete:
            completed += 1
            for more in (*PIECES, _random_text(rng)):
                assert form.trim(text + more) == (kept, True)
    assert completed > 500


@pytest.mark.parametrize(
    ("form", "example"),
    [
        (OPTION, PARIS_CLOSED),
        (HASH, PARIS),
        (HASH, SIXTEEN),
        (PHRASE, PARIS),
        (PHRASE, CURIE),
        (BOXED, SIXTEEN_BOXED),
        (TAG, PARIS.model_copy(update={"target": "<a>Paris</a>"})),
        (FOUND, SIXTEEN),
    ],
    ids=lambda value: value.name if not isinstance(value, Example) else value.target,
)
def test_exact_match_implies_form_and_knowledge(form: AnswerFormat, example: Example) -> None:
    rng = random.Random(1)
    exact = 0
    for text in [example.target, *(_random_text(rng) for _ in range(5000))]:
        response = form.trim(text)[0]
        if form.exact_match(response, example):
            exact += 1
            assert form.in_format(response, example)
            assert form.closed or form.knows(response, example)
    assert exact > 0


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_form_does_not_depend_on_being_right(form: AnswerFormat) -> None:
    """The same response to a question with another answer of the same kind is as much in form."""
    other = Example(question="?", answer="Rome", target="B. Rome", options=PARIS_OPTIONS)
    for row in (row for _, rows in TABLES for row in rows):
        assert form.in_format(row.response, PARIS_CLOSED) == form.in_format(row.response, other)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Beatles", "beatles"),
        ("A cappella", "cappella"),
        ("Vitamin A", "vitamin a"),
        ("A", "a"),
        ("Port-au-Prince", "port au prince"),
        ("N'Djamena", "ndjamena"),
        ("Washington, D.C.", "washington dc"),
        ("Chișinău", "chisinau"),
        ("Søren Łódź Straße", "soren lodz strasse"),
        ("3.14", "3.14"),
        ("1,000", "1000"),
        ("red,white", "red white"),
        ("$16", "16"),
        ("!?", ""),
    ],
)
def test_normalise(text: str, normal: str) -> None:
    assert normalise(text) == normal


def test_empty_answers_match_nothing() -> None:
    assert not equals_any("!?", ("...",))
    assert not contains_any("anything", ("...",))


def test_the_token_budget_of_hash_answers_is_the_benchmarks_choice() -> None:
    assert (HashAnswer(160).max_new_tokens, HASH.max_new_tokens) == (160, 24)
    assert (OPTION.max_new_tokens, PHRASE.max_new_tokens) == (24, 24)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
@pytest.mark.parametrize("example", [PARIS_CLOSED, PARIS, SIXTEEN, HALF, CURIE], ids=lambda example: example.target)
def test_dummies_are_in_form_and_tell_nothing(form: AnswerFormat, example: Example) -> None:
    if form.closed:
        example = example.model_copy(update={"options": PARIS_OPTIONS})
    rng = random.Random(0)
    dummies = [form.dummy(rng, example) for _ in range(200)]
    for dummy in dummies:
        assert form.trim(f"{dummy}\n\nQuestion:")[0] == dummy
        assert form.in_format(dummy, example)
    if form not in (FOUND, UNTIL):
        assert len(set(dummies)) >= 4
    if example.answer == "Paris" and not form.closed:
        assert not any(form.exact_match(dummy, example) for dummy in dummies)
    assert dummies == [form.dummy(rng, example) for rng in [random.Random(0)] for _ in range(200)], "by the seed alone"


def test_hash_dummies_are_numbers_where_numbers_are_asked_for() -> None:
    rng = random.Random(0)
    assert all(HASH.dummy(rng, SIXTEEN).removeprefix("#### ").isdigit() for _ in range(50))
    assert all(HASH.dummy(rng, PARIS).removeprefix("#### ").isalpha() for _ in range(50))


def test_a_dummy_that_fits_a_narrow_pattern_is_another_rows_target() -> None:
    form = Pattern("(yes|no)!", "{answer}!", pool=("yes!", "no!"))
    rng = random.Random(0)
    assert {form.dummy(rng, PARIS) for _ in range(20)} == {"yes!", "no!"}


def test_a_pattern_that_backtracks_without_end_ends_the_run_with_a_sentence() -> None:
    form = Pattern("((?:a|aa)+)$")
    assert form.find("aaaa") == "aaaa"
    with pytest.raises(UserError, match="takes too long"):
        for _ in range(30):
            assert form.find("a" * 60 + "!") is None


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<", "*"])
def test_a_pattern_that_is_none(pattern: str) -> None:
    with pytest.raises(UserError, match="is no regular expression"):
        Pattern(pattern)
