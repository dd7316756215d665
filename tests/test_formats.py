"""Answer formats: tables of texts, one row a decision, and the properties that hold for all of them."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from spt.benchmarks.answers import contains_any, equals_any, normalise
from spt.benchmarks.base import Example
from spt.benchmarks.formats import AnswerFormat, Boxed, HashAnswer, OptionCopy, Pattern, ShortPhrase, Stops
from spt.spec import UserError

OPTION, HASH, PHRASE, BOXED = OptionCopy(), HashAnswer(24), ShortPhrase(), Boxed(24)
TAG = Pattern("<a>(.+?)</a>", "<a>{answer}</a>")
FOUND = Pattern(r"#### (-?[0-9.,]+)", whole=False, pool=("So\n#### 16",))
UNTIL = Stops(FOUND, ("Question:", "\n\n"))
FORMATS: tuple[AnswerFormat, ...] = (OPTION, HASH, PHRASE, BOXED, TAG, FOUND, UNTIL)

PARIS_OPTIONS = ("A. Paris", "B. Rome", "C. São Tomé", "D. Bern")
PARIS_CLOSED = Example(question="?", answer="Paris", target="A. Paris", options=PARIS_OPTIONS)
PARIS = Example(question="?", answer="Paris", target="#### Paris")
BOGOTA = Example(question="?", answer="Bogotá", target="#### Bogotá")
WASHINGTON = Example(question="?", answer="Washington, D.C.", target="#### Washington, D.C.", aliases=("Washington",))
SIXTEEN = Example(question="?", answer="16", target="#### 16")
THOUSAND = Example(question="?", answer="1000", target="#### 1000")
CURIE = Example(question="?", answer="Marie Curie", target="Marie Curie", aliases=("Maria Skłodowska-Curie",))
LEWIS = Example(question="?", answer="C. S. Lewis", target="C. S. Lewis")
VITAMIN = Example(question="?", answer="Vitamin A", target="Vitamin A", aliases=("A",))


class Row(NamedTuple):
    """One response to one question; `knows` is None for closed questions."""

    example: Example
    response: str
    in_format: bool
    exact_match: bool
    knows: bool | None


OPTION_ROWS = [
    Row(PARIS_CLOSED, response, in_format, exact, None)
    for response, in_format, exact in [
        ("A. Paris", True, True),
        ("B. Rome", True, False),
        ("C. São Tomé", True, False),
        ("D. Bern", True, False),
        ("", False, False),
        ("A", False, False),
        ("A.", False, False),
        ("Paris", False, False),
        ("A. Paris.", False, False),
        ("A) Paris", False, False),
        ("(A) Paris", False, False),
        ("A: Paris", False, False),
        ("A.Paris", False, False),
        ("A.  Paris", False, False),
        ("a. Paris", False, False),
        ("A. paris", False, False),
        ("A. PARIS", False, False),
        ("**A. Paris**", False, False),
        ("`A. Paris`", False, False),
        ('"A. Paris"', False, False),
        ("A. Paris B. Rome", False, False),
        ("A. Paris, France", False, False),
        ("A. Rome", False, False),
        ("B. Paris", False, False),
        ("E. Paris", False, False),
        ("The answer is A", False, False),
        ("The answer is A. Paris", False, False),
        ("Answer: A. Paris", False, False),
        ("C. Sao Tome", False, False),
        ("C. Sa\u0303o Tome\u0301", False, False),
        ("Α. Paris", False, False),  # a Greek capital alpha
        ("A. Paris\nB. Rome", False, False),
        ("A. Paris ", False, False),  # `trim` would have removed the space
    ]
]

HASH_ROWS = [
    Row(PARIS, "#### Paris", True, True, True),
    Row(PARIS, "####  Paris", True, True, True),
    Row(PARIS, "France is in Europe.\n#### Paris", True, True, True),
    Row(PARIS, "#### paris", True, True, True),
    Row(PARIS, "#### Rome", True, False, False),
    Row(PARIS, "#### 16", True, False, False),
    Row(PARIS, "It is Paris.\n#### Rome", True, False, True),
    Row(PARIS, "", False, False, False),
    Row(PARIS, "####", False, False, False),
    Row(PARIS, "#### ", False, False, False),
    Row(PARIS, "#### !", False, False, False),
    Row(PARIS, "####Paris", False, False, True),
    Row(PARIS, "### Paris", False, False, True),
    Row(PARIS, "##### Paris", False, False, True),
    Row(PARIS, "Paris", False, False, True),
    Row(PARIS, "Paris ####", False, False, True),
    Row(PARIS, "So: #### Paris", False, False, True),
    Row(PARIS, "#### Paris.", False, False, True),
    Row(PARIS, "#### **Paris**", False, False, True),
    Row(PARIS, "**#### Paris**", False, False, True),
    Row(PARIS, "#### Paris ####", False, False, True),
    Row(PARIS, "#### Paris\n#### Rome", False, False, True),
    Row(PARIS, "#### Paris #### Rome", False, False, True),
    Row(PARIS, "#### Paris or Rome", False, False, True),
    Row(PARIS, "#### Paris\nIt lies on the Seine.", False, False, True),
    Row(PARIS, "#### Paris\u2028and more", False, False, True),
    Row(PARIS, "#### The capital of France is Paris", False, False, True),
    Row(PARIS, "The capital of France is Paris.", False, False, True),
    Row(PARIS, "Parisian cafés", False, False, False),
    Row(BOGOTA, "#### Bogota", True, True, True),
    Row(BOGOTA, "#### Bogota\u0301", True, True, True),
    Row(BOGOTA, "#### Bogotá", True, True, True),
    Row(WASHINGTON, "#### Washington, D.C.", True, True, True),
    Row(WASHINGTON, "#### Washington DC", True, True, True),
    Row(WASHINGTON, "#### Washington", True, True, True),
    Row(SIXTEEN, "#### 16", True, True, True),
    Row(SIXTEEN, "48/3=<<48/3=16>>16 pens\n#### 16", True, True, True),
    Row(SIXTEEN, "\n#### 16", True, True, True),
    Row(SIXTEEN, "#### $16", True, True, True),
    Row(SIXTEEN, "#### 16.0", True, True, True),
    Row(SIXTEEN, "#### 16%", True, True, True),
    Row(SIXTEEN, "#### 17", True, False, False),
    Row(SIXTEEN, "#### -16", True, False, False),
    Row(SIXTEEN, "#### \N{MINUS SIGN}16", True, False, False),
    Row(SIXTEEN, "16 + 1 = 17\n#### 17", True, False, False),
    Row(SIXTEEN, "The answer is 16.\n#### 15", True, False, False),
    Row(SIXTEEN, "#### 16.", False, False, True),
    Row(SIXTEEN, "#### 16 apples", False, False, True),
    Row(SIXTEEN, "#### Ann has 16", False, False, True),
    Row(SIXTEEN, "#### sixteen", False, False, False),
    Row(SIXTEEN, "48/3=16\n#### sixteen", False, False, True),
    Row(SIXTEEN, "#### 10+6", False, False, False),
    Row(SIXTEEN, "#### 16 17", False, False, True),
    Row(SIXTEEN, "####16", False, False, True),
    Row(SIXTEEN, "The answer is $16.00.", False, False, True),
    Row(SIXTEEN, "**16**", False, False, True),
    Row(SIXTEEN, "16 is 4 times 4", False, False, False),
    Row(SIXTEEN, "48-32=16", False, False, True),
    Row(SIXTEEN, "32-16", False, False, True),
    Row(SIXTEEN, "x16", False, False, False),
    Row(SIXTEEN, "3.16", False, False, False),
    Row(SIXTEEN, "116", False, False, False),
    Row(SIXTEEN, "16,000", False, False, False),
    Row(SIXTEEN, "", False, False, False),
    Row(SIXTEEN, "#### ١٦", False, False, False),  # Arabic-Indic digits are not the form asked for
    Row(THOUSAND, "#### 1,000", True, True, True),
    Row(THOUSAND, "#### 1000", True, True, True),
    Row(THOUSAND, "#### $1,000.00", True, True, True),
    Row(THOUSAND, "#### 1,00", False, False, False),
    Row(THOUSAND, "#### 1.000", True, False, False),
    Row(THOUSAND, "She pays 1,000.", False, False, True),
]

PHRASE_ROWS = [
    Row(CURIE, "Marie Curie", True, True, True),
    Row(CURIE, "marie curie", True, True, True),
    Row(CURIE, "Marie  Curie", True, True, True),
    Row(CURIE, "The Marie Curie", True, True, True),
    Row(CURIE, "Maria Sklodowska Curie", True, True, True),
    Row(CURIE, "Maria Skłodowska-Curie", True, True, True),
    Row(CURIE, "Pierre Curie", True, False, False),
    Row(CURIE, "Marie", True, False, False),
    Row(CURIE, "Marie Curie and Pierre Curie", True, False, True),
    Row(CURIE, "B", True, False, False),
    Row(CURIE, "16", True, False, False),
    Row(CURIE, "東京", True, False, False),
    Row(CURIE, "", False, False, False),
    Row(CURIE, "...", False, False, False),
    Row(CURIE, "Marie Curie.", False, False, True),
    Row(CURIE, "Marie Curie!", False, False, True),
    Row(CURIE, "Marie Curie?", False, False, True),
    Row(CURIE, "**Marie Curie**", False, False, True),
    Row(CURIE, "_Marie Curie_", False, False, True),
    Row(CURIE, "`Marie Curie`", False, False, True),
    Row(CURIE, '"Marie Curie"', False, False, True),
    Row(CURIE, "“Marie Curie”", False, False, True),
    Row(CURIE, "#### Marie Curie", False, False, True),
    Row(CURIE, "\\boxed{Marie Curie}", False, False, True),
    Row(CURIE, "A. Marie Curie", False, False, True),
    Row(CURIE, "A) Marie Curie", False, False, True),
    Row(CURIE, "(A) Marie Curie", False, False, True),
    Row(CURIE, "A: Marie Curie", False, False, True),
    Row(CURIE, "Answer: Marie Curie", False, False, True),
    Row(CURIE, "The answer is Marie Curie", False, False, True),
    Row(CURIE, "The correct answer: Marie Curie", False, False, True),
    Row(CURIE, "The answer is B", False, False, False),
    Row(CURIE, "It was Marie Curie", False, False, True),
    Row(CURIE, "It's Marie Curie", False, False, True),
    Row(CURIE, "I think Marie Curie", False, False, True),
    Row(CURIE, "Yes, Marie Curie", False, False, True),
    Row(CURIE, "Marie Curie or Lise Meitner", False, False, True),
    Row(CURIE, "Marie Curie, who found radium", False, False, True),
    Row(CURIE, "Marie Curie - a physicist", False, False, True),
    Row(CURIE, "Marie Curie (1867)", False, False, True),
    Row(CURIE, "Marie Curie found radium in Paris with her husband Pierre", False, False, True),
    Row(CURIE, "Marie Curie\nLise Meitner", False, False, True),
    Row(CURIE, "Marie Curie ", False, False, True),  # `trim` would have removed the space
    Row(CURIE, "Marie Curies", True, False, False),
    Row(LEWIS, "C. S. Lewis", True, True, True),
    Row(LEWIS, "C.S. Lewis", True, False, False),
    Row(LEWIS, "CS Lewis", True, False, False),
    Row(LEWIS, "C. Lewis", False, False, False),
    Row(WASHINGTON, "Washington, D.C.", True, True, True),
    Row(WASHINGTON, "Washington, the capital", False, False, True),
    Row(VITAMIN, "Vitamin A", True, True, True),
    Row(VITAMIN, "Vitamin C", True, False, False),
]


HALF = Example(question="?", answer="\\frac{1}{2}", target="\\boxed{\\frac{1}{2}}")
ROOT = Example(question="?", answer="2\\sqrt{3}", target="\\boxed{2\\sqrt{3}}")
SIXTEEN_BOXED = Example(question="?", answer="16", target="\\boxed{16}")
PAIR = Example(question="?", answer="(1,2)", target="\\boxed{(1,2)}")
NAME = Example(question="?", answer="\\text{Ida}", target="\\boxed{\\text{Ida}}")

BOXED_ROWS = [
    Row(SIXTEEN_BOXED, r"\boxed{16}", True, True, True),
    Row(SIXTEEN_BOXED, r"$\boxed{16}$", True, True, True),
    Row(SIXTEEN_BOXED, r"\[ \boxed{16}. \]", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed {16}", True, True, True),
    Row(SIXTEEN_BOXED, "4 times 4 is 16.\nSo $x = \\boxed{16}$ metres.", True, True, True),
    Row(SIXTEEN_BOXED, r"**\boxed{16}**", True, True, True),
    Row(SIXTEEN_BOXED, r"The answer is \boxed{16}.", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{16.0}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{\$16}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{ 16 }", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{4^2}", True, True, True),
    Row(SIXTEEN_BOXED, r"\boxed{17}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{-16}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{the answer}", True, False, False),
    Row(SIXTEEN_BOXED, r"16 = \boxed{15}", True, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{9^{9^{9^9}}}", True, False, False),  # never computed to its end
    Row(SIXTEEN_BOXED, r"\boxed{\frac{}{}}", True, False, False),
    Row(SIXTEEN_BOXED, "", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{}", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{ }", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{16", False, False, True),
    Row(SIXTEEN_BOXED, r"\boxed 16", False, False, True),
    Row(SIXTEEN_BOXED, r"boxed{16}", False, False, True),
    Row(SIXTEEN_BOXED, r"\fbox{16}", False, False, True),
    Row(SIXTEEN_BOXED, "16", False, False, True),
    Row(SIXTEEN_BOXED, "#### 16", False, False, True),
    Row(SIXTEEN_BOXED, "The answer is 16.", False, False, True),
    Row(SIXTEEN_BOXED, "The answer is B", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{15} or \boxed{16}", False, False, True),
    Row(SIXTEEN_BOXED, r"\boxed{16} or \boxed{15}", False, False, False),
    Row(SIXTEEN_BOXED, r"\boxed{\boxed{16}}", False, False, True),
    Row(SIXTEEN_BOXED, "\\boxed{16}\nIt was easy.", False, False, True),
    Row(HALF, r"\boxed{\frac{1}{2}}", True, True, True),
    Row(HALF, r"\boxed{\frac12}", True, True, True),
    Row(HALF, r"\boxed{\dfrac{1}{2}}", True, True, True),
    Row(HALF, r"\boxed{0.5}", True, True, True),
    Row(HALF, r"\boxed{1/2}", True, True, True),
    Row(HALF, r"\boxed{\frac{2}{1}}", True, False, False),
    Row(HALF, r"\boxed{\frac{1}{2}", False, False, True),  # never closed; the fraction is the last formula
    Row(HALF, r"so it is $\frac{1}{2}$", False, False, True),
    Row(ROOT, r"\boxed{2\sqrt{3}}", True, True, True),
    Row(ROOT, r"\boxed{\sqrt{12}}", True, True, True),
    Row(ROOT, r"\boxed{2\sqrt 3}", True, True, True),
    Row(ROOT, r"\boxed{\left\{ 3 \right\}}", True, False, False),
    Row(PAIR, r"\boxed{(1, 2)}", True, True, True),
    Row(PAIR, r"\boxed{(2,1)}", True, False, False),
    Row(NAME, r"\boxed{\text{Ida}}", True, True, True),
    Row(NAME, r"\boxed{Ida}", True, True, True),
    Row(THOUSAND, r"\boxed{1,000}", True, True, True),
]

PATTERN_ROWS = [
    Row(PARIS, response, in_format, exact, knows)
    for response, in_format, exact, knows in [
        ("<a>Paris</a>", True, True, True),
        ("<a>paris</a>", True, True, True),
        ("<a> Paris </a>", True, True, True),
        ("<a>Rome</a>", True, False, False),
        ("<a>B</a>", True, False, False),
        ("<a>The answer is Paris</a>", True, False, True),
        ("<a>B) Paris</a>", True, False, True),
        ("<a>**Paris**</a>", True, True, True),  # what counts as the answer is the user's own expression
        ("<a>Paris</a><a>Rome</a>", True, False, True),  # .+? runs to the last </a> of a full match
        ("", False, False, False),
        ("Paris", False, False, True),
        ("<a></a>", False, False, False),
        ("<a> </a>", False, False, False),
        ("<a>Paris", False, False, True),
        ("Paris</a>", False, False, True),
        ("<A>Paris</A>", False, False, True),
        ("<a>Paris</a>.", False, False, True),
        ("**<a>Paris</a>**", False, False, True),
        ("It is <a>Paris</a>", False, False, True),
        ("<a>Paris\n</a>", False, False, True),
        ("<a>Paris</a>\n<a>Rome</a>", False, False, True),
        ("#### Paris", False, False, True),
        ("\\boxed{Paris}", False, False, True),
        ("The answer is B", False, False, False),
        ("<b>Paris</b>", False, False, True),
    ]
] + [
    Row(THOUSAND, "<a>1,000</a>", True, True, True),
    Row(SIXTEEN, "<a>$16</a>", True, True, True),
    Row(SIXTEEN, "<a>16.0</a>", True, True, True),
    Row(SIXTEEN, "<a>16 of 20</a>", True, False, True),
    Row(SIXTEEN, "16 and <a>17</a>", False, False, False),
]

FOUND_ROWS = [
    Row(SIXTEEN, "#### 16", True, True, True),
    Row(SIXTEEN, "So #### 16 it is", True, True, True),
    Row(SIXTEEN, "#### 16.", True, True, True),
    Row(SIXTEEN, "#### 15\n#### 16", True, False, False),  # the first is taken, as lm-eval's filter does
    Row(SIXTEEN, "#### sixteen", False, False, False),
    Row(SIXTEEN, "16", False, False, True),
]

TABLES: tuple[tuple[AnswerFormat, list[Row]], ...] = (
    (OPTION, OPTION_ROWS),
    (HASH, HASH_ROWS),
    (PHRASE, PHRASE_ROWS),
    (BOXED, BOXED_ROWS),
    (TAG, PATTERN_ROWS),
    (FOUND, FOUND_ROWS),
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
