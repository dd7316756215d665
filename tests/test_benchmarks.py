"""What the bundled benchmarks promise: counts, disjoint splits, targets in their own format, right arithmetic."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest

from spt.benchmarks import BENCHMARKS, BUNDLED, Example, get
from spt.benchmarks.answers import contains_any, normalise
from spt.benchmarks.arithmetic_stories import (
    TEST_NAMES,
    TEST_STORIES,
    TEST_THINGS,
    TRAIN_NAMES,
    TRAIN_STORIES,
    TRAIN_THINGS,
)
from spt.benchmarks.assets import AssetRow, read_rows
from spt.benchmarks.capitals import CapitalRow, read_capitals
from spt.benchmarks.trivia import read_trivia
from spt.spec import UserError

SPLITS = {name: benchmark.load() for name, benchmark in BUNDLED.items()}
EXAMPLES = [(name, example) for name, split in SPLITS.items() for example in (*split.train, *split.test)]
UN_MEMBERS_BY_REGION = {"Africa": 54, "Americas": 35, "Asia": 47, "Europe": 43, "Oceania": 14}


def accepted(example: Example) -> set[str]:
    """All accepted answers, normalised."""
    return {normalise(text) for text in (example.answer, *example.aliases)}


@pytest.mark.parametrize(
    ("name", "train", "test"), [("capitals", 129, 64), ("capitals-mc", 129, 64), ("trivia", 574, 247)]
)
def test_counts(name: str, train: int, test: int) -> None:
    assert (len(SPLITS[name].train), len(SPLITS[name].test)) == (train, test)


def test_arithmetic_has_as_many_rows_as_a_tuning_run_needs() -> None:
    assert len(SPLITS["arithmetic"].train) >= 640 and len(SPLITS["arithmetic"].test) >= 200


@pytest.mark.parametrize("name", BUNDLED)
def test_ids_and_questions_are_unique(name: str) -> None:
    examples = [*SPLITS[name].train, *SPLITS[name].test]
    assert len({example.id for example in examples}) == len(examples)
    assert len({normalise(example.question) for example in examples}) == len(examples)


@pytest.mark.parametrize("name", BUNDLED)
def test_loading_is_deterministic_and_drops_nothing(name: str) -> None:
    assert BUNDLED[name].load() == SPLITS[name]
    assert SPLITS[name].dropped == {}


def test_loading_does_not_depend_on_the_process() -> None:
    """Ids hashed in another process, with another hash seed, are the same."""
    code = (
        "from spt.benchmarks import BUNDLED\n"
        "print(*(e.id for b in BUNDLED.values() for s in [b.load()] for e in (*s.train, *s.test)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}
    )
    assert done.stdout.split() == [example.id for _, example in EXAMPLES]


def test_targets_pass_their_own_format() -> None:
    for name, example in EXAMPLES:
        form = BUNDLED[name].format
        response, complete = form.trim(f" {example.target}\n")
        assert (response, complete) == (example.target, True)
        assert form.in_format(response, example), example
        assert form.exact_match(response, example), example
        assert form.closed or form.knows(response, example), example


def test_every_alias_is_an_exact_match_in_form() -> None:
    for name, example in EXAMPLES:
        for alias in example.aliases:
            response = example.target.replace(example.answer, alias)
            assert BUNDLED[name].format.exact_match(response, example), (name, alias)


def test_echoing_the_question_is_not_knowledge() -> None:
    for name, split in SPLITS.items():
        for example in split.test:
            assert not contains_any(example.question, (example.answer, *example.aliases)), (name, example.question)
    for example in SPLITS["trivia"].train:
        assert not contains_any(example.question, (example.answer, *example.aliases)), example.question


def test_targets_fit_the_token_budget() -> None:
    """Counted pessimistically: every digit, sign and line break is a token, every word two."""
    for name, example in EXAMPLES:
        pieces = re.findall(r"[^\W\d]+|[^\w\s]|\d|\n", example.target)
        tokens = sum(2 if piece.isalpha() else 1 for piece in pieces)
        assert tokens < BUNDLED[name].format.max_new_tokens, example.target


def test_instructions_hold_no_answer() -> None:
    for name, example in EXAMPLES:
        assert not contains_any(BUNDLED[name].instruction, (example.target,)), (name, example.target)


def test_capitals_hold_every_un_member_once() -> None:
    rows = read_capitals()
    assert len({normalise(row.country) for row in rows}) == len(rows) == 193
    assert Counter(row.region for row in rows) == UN_MEMBERS_BY_REGION


def test_capitals_test_split_is_balanced_over_the_regions() -> None:
    rows = read_capitals()
    test = Counter(row.region for row in rows if row.split == "test")
    for region, members in UN_MEMBERS_BY_REGION.items():
        assert abs(test[region] - members * 64 / 193) < 1, region


def test_capitals_splits_share_no_country_and_no_capital() -> None:
    train, test = SPLITS["capitals"].train, SPLITS["capitals"].test
    assert not {e.question for e in train} & {e.question for e in test}
    assert not set().union(*map(accepted, train)) & set().union(*map(accepted, test))


def test_countries_that_resemble_their_capital_are_in_train() -> None:
    def resembles(row: CapitalRow) -> bool:
        country, capital = (normalise(text).replace(" ", "") for text in (row.country, row.capital))
        return country in capital or capital in country or country[:3] == capital[:3]

    alike = [row for row in read_capitals() if resembles(row)]
    assert {"Singapore", "Tunisia", "Algeria", "Mexico", "Guinea-Bissau"} <= {row.country for row in alike}
    assert {row.split for row in alike} == {"train"}


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_letter_is_right_equally_often(split: str) -> None:
    letters = Counter(example.target[0] for example in getattr(SPLITS["capitals-mc"], split))
    assert set(letters) == set("ABCD")
    assert max(letters.values()) - min(letters.values()) <= 1


@pytest.mark.parametrize("split", ["train", "test"])
def test_options_are_four_capitals_of_one_region_and_split(split: str) -> None:
    region_of = {row.capital: (row.region, row.split) for row in read_capitals()}
    for example in getattr(SPLITS["capitals-mc"], split):
        names = [option[3:] for option in example.options]
        assert [option[:3] for option in example.options] == ["A. ", "B. ", "C. ", "D. "]
        assert len(set(names)) == 4
        assert {region_of[name] for name in names} == {(example.topic, split)}
        assert example.target in example.options and example.target[3:] == example.answer


def test_capitals_mc_has_the_questions_of_capitals() -> None:
    for split in ("train", "test"):
        mc, opened = getattr(SPLITS["capitals-mc"], split), getattr(SPLITS["capitals"], split)
        assert [e.question for e in mc] == [e.question for e in opened]


def test_trivia_splits_share_no_subject_and_no_answer() -> None:
    keys: dict[str, set[str]] = {"train": set(), "test": set()}
    for row in read_trivia():
        keys[row.split] |= {normalise(text) for text in (row.subject, row.answer, *row.aliases)}
    assert keys["train"] and keys["test"]
    assert not keys["train"] & keys["test"]


def test_trivia_topics() -> None:
    rows = read_trivia()
    topics = Counter(row.topic for row in rows)
    tested = Counter(row.topic for row in rows if row.split == "test")
    assert len(topics) == 16
    assert min(topics.values()) >= 30 and min(tested.values()) >= 10
    assert len({example.topic for example in SPLITS["trivia"].test[:64]}) == 16, "the default items show every topic"


def test_arithmetic_calculations_are_right() -> None:
    split = SPLITS["arithmetic"]
    for example in (*split.train, *split.test):
        *lines, last = example.target.splitlines()
        assert 2 <= len(lines) <= 3 and last == f"#### {example.answer}"
        known = {int(number) for number in re.findall(r"\d+", example.question)} | {2}  # 2: "half", "two equal parts"
        for line in lines:
            calculations = re.findall(r"(\d+)([-+*/])(\d+)=<<(\d+)([-+*/])(\d+)=(\d+)>>(\d+)(?!\d)", line)
            assert len(calculations) == 1, line
            x, sign, y, *annotated, value, shown = calculations[0]
            assert annotated == [x, sign, y] and shown == value
            left, right = Fraction(x), Fraction(y)
            results = {"+": left + right, "-": left - right, "*": left * right, "/": left / right}
            assert results[sign] == int(value) > 1, line
            assert {int(x), int(y)} <= known, f"{line!r} uses a number from nowhere"
            known.add(int(value))
        assert value == example.answer


def test_arithmetic_answer_is_not_among_the_numbers_of_the_question() -> None:
    split = SPLITS["arithmetic"]
    for example in (*split.train, *split.test):
        assert example.answer not in re.findall(r"\d+", example.question)


def test_arithmetic_splits_share_no_story_name_or_thing() -> None:
    assert not {s.topic for s in TRAIN_STORIES} & {s.topic for s in TEST_STORIES}
    assert not {s.text for s in TRAIN_STORIES} & {s.text for s in TEST_STORIES}
    split = SPLITS["arithmetic"]
    for examples, others in ((split.train, (*TEST_NAMES, *TEST_THINGS)), (split.test, (*TRAIN_NAMES, *TRAIN_THINGS))):
        words = {word.strip(string.punctuation) for example in examples for word in example.question.split()}
        assert not words & set(others)
    assert {e.topic for e in split.train} == {s.topic for s in TRAIN_STORIES}
    assert {e.topic for e in split.test} == {s.topic for s in TEST_STORIES}


def test_arithmetic_fills_every_blank() -> None:
    split = SPLITS["arithmetic"]
    for example in (*split.train, *split.test):
        assert not set("{}") & set(example.question + example.target)


@pytest.mark.parametrize("name", ["capitals_mc", "capitals-mc", " Capitals-MC "])
def test_get_forgives_spelling(name: str) -> None:
    assert get(name) is BENCHMARKS["capitals-mc"]


def test_names_are_their_keys() -> None:
    assert {name: benchmark.name for name, benchmark in BENCHMARKS.items()} == {name: name for name in BENCHMARKS}


def test_unknown_benchmark() -> None:
    with pytest.raises(UserError, match=r"^Unknown benchmark 'trivai'\. Known: .+\. Did you mean 'trivia'\?$"):
        get("trivai")
    with pytest.raises(UserError, match=r"mmlu\.$"):
        get("x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"split": "train"}\n{"split": "dev"}\n', "line 2: split"),
        ("not json\n", "line 1"),
        ('{"split": "train", "more": 1}\n', "line 1: more"),
    ],
)
def test_a_damaged_asset_is_one_clear_sentence(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    folder = tmp_path_factory.mktemp("assets")
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")
    monkeypatch.setattr("spt.benchmarks.assets.FOLDER", folder)
    with pytest.raises(UserError, match=message):
        read_rows("rows.jsonl", AssetRow)
    with pytest.raises(UserError, match=r"none\.jsonl is missing"):
        read_rows("none.jsonl", AssetRow)


def test_importing_the_benchmarks_is_light() -> None:
    heavy = ("torch", "datasets", "transformers", "pyarrow", "lm_eval", "math_verify")
    code = f"import sys, spt.benchmarks, spt.preview; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
