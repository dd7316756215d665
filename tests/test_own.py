"""The user's own files: what is read, and the sentence that each kind of mistake gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spt.benchmarks import load
from spt.benchmarks.formats import Boxed, HashAnswer, OptionCopy, Pattern, ShortPhrase
from spt.spec import RunSpec, UserError

WORDS = ("apple", "basket", "candle", "door", "engine", "forest", "garden", "hammer", "island", "jacket")
ROWS = [{"question": f"Which word is number {i}?", "answer": word} for i, word in enumerate(WORDS)]
CLOSED = [{**row, "options": [row["answer"], "wrong", "worse"], "topic": "ab"[i % 2]} for i, row in enumerate(ROWS)]


def own(folder: Path, rows: list[dict[str, Any]] | str | bytes, suffix: str = "jsonl", **settings: str) -> Any:
    path = folder / f"questions.{suffix}"
    if isinstance(rows, list):
        rows = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    return load(RunSpec(benchmark=str(path), **settings))


def csv(*lines: str, count: int = 10) -> str:
    """The lines, and plain rows up to the count, so that the lines alone can be wrong."""
    header = lines[0].split(",")
    cells = [{"question": f"Q{i}?", "answer": f"word{i}"} for i in range(count)]
    plain = [",".join(row.get(name, "") for name in header) for row in cells]
    return "\n".join((*lines, *plain)) + "\n"


def test_jsonl_without_options_is_a_short_phrase(tmp_path: Path) -> None:
    benchmark, split = own(tmp_path, ROWS)
    assert isinstance(benchmark.format, ShortPhrase) and not benchmark.closed
    assert benchmark.name == "questions.jsonl" and benchmark.licence == "yours"
    assert (len(split.train), len(split.test)) == (6, 4), "a fifth, but four at least"
    assert {e.target for e in (*split.train, *split.test)} == set(WORDS)
    assert own(tmp_path, ROWS)[1] == split, "the same rows each time"
    again = own(tmp_path, list(reversed(ROWS)))[1]
    assert {e.id for e in again.test} == {e.id for e in split.test}, "whatever their order"


def test_a_fifth_is_the_test_split(tmp_path: Path) -> None:
    split = own(tmp_path, [{"question": f"Q{i}?", "answer": f"word{i}"} for i in range(100)])[1]
    assert (len(split.train), len(split.test)) == (80, 20)


def test_jsonl_with_options_is_option_copy(tmp_path: Path) -> None:
    benchmark, split = own(tmp_path, CLOSED)
    assert isinstance(benchmark.format, OptionCopy) and benchmark.closed
    example = split.train[0]
    assert example.options == (f"A. {example.answer}", "B. wrong", "C. worse")
    assert example.target == f"A. {example.answer}"
    assert {e.topic for e in own(tmp_path, CLOSED, holdout_topic="a")[1].test} == {"a"}


@pytest.mark.parametrize("answer", ["Rome", "rome ", "B", "b", "B.", "B. Rome"])
def test_the_right_option_by_text_or_letter(tmp_path: Path, answer: str) -> None:
    rows = [{**CLOSED[0], "question": f"{i}?"} for i in range(8)]
    split = own(tmp_path, [{"question": "Where?", "answer": answer, "options": ["Bern", "Rome", "Oslo"]}, *rows])[1]
    assert [e.target for e in (*split.train, *split.test) if e.question == "Where?"] == ["B. Rome"]


def test_an_option_that_is_a_letter_goes_before_the_letter_of_an_option(tmp_path: Path) -> None:
    rows = [{"question": f"{i}?", "answer": "A", "options": ["C. x", "A"]} for i in range(8)]
    assert own(tmp_path, rows)[1].train[0].target == "B. A"


def test_options_that_have_their_letters_keep_one(tmp_path: Path) -> None:
    rows = [{"question": f"{i}?", "answer": "B", "options": ["A. x", "B. y"]} for i in range(8)]
    assert own(tmp_path, rows)[1].train[0].options == ("A. x", "B. y")


def test_csv(tmp_path: Path) -> None:
    lines = ["\ufeffQuestion,answer,options,aliases,topic,split,id"]
    lines += [f'"Is {i}, or not?",y|es,"[""no"", ""y|es""]",,logic,train,{i}' for i in range(4)]
    lines += [f"Where {i}?,B,here|there,,place,Test,{i}" for i in range(4)]
    benchmark, split = own(tmp_path, "\r\n".join(lines) + "\r\n\r\n", "csv")
    assert [e.question for e in split.train] == [f"Is {i}, or not?" for i in range(4)]
    assert split.train[0].options == ("A. no", "B. y|es")
    assert [e.target for e in split.test] == ["B. there"] * 4
    assert split.test[0].topic == "place" and benchmark.closed


def test_aliases_and_numbers(tmp_path: Path) -> None:
    rows = [{"question": f"{i}?", "answer": i, "aliases": [f"number {i}"]} for i in range(8)]
    benchmark, split = own(tmp_path, rows, answer_format="hash")
    assert isinstance(benchmark.format, HashAnswer)
    assert split.train[0].target == f"#### {split.train[0].answer}"
    csv_rows = "question,answer,aliases\n" + "".join(f"{i}?,-{i + 1}.5,minus {i}|under zero\n" for i in range(8))
    assert own(tmp_path, csv_rows, "csv")[1].train[0].aliases[1] == "under zero", "a negative number is no formula"


def test_negative_numbers_are_options_and_no_formulas(tmp_path: Path) -> None:
    text = "question,answer,options\n" + "".join(f"{i}?,-5,-5|-3\n" for i in range(8))
    assert own(tmp_path, text, "csv")[1].train[0].options == ("A. -5", "B. -3")


def test_worked_solutions_stay_whole(tmp_path: Path) -> None:
    rows = [{"question": f"{i}?", "answer": f"One.\n#### {i}"} for i in range(8)]
    example = own(tmp_path, rows, answer_format="hash")[1].train[0]
    assert example.target.startswith("One.\n#### ") and example.target.endswith(f" {example.answer}")
    rows = [{"question": f"{i}?", "answer": f"It is $\\boxed{{{i}}}$."} for i in range(8)]
    benchmark, split = own(tmp_path, rows, answer_format="boxed")
    assert isinstance(benchmark.format, Boxed)
    assert split.train[0].target == f"It is $\\boxed{{{split.train[0].answer}}}$."
    rows = [{"question": f"{i}?", "answer": str(i)} for i in range(8)]
    assert own(tmp_path, rows, answer_format="boxed")[1].train[0].target.startswith("\\boxed{")


def test_a_form_of_the_users(tmp_path: Path) -> None:
    settings = {"template": "<answer>{answer}</answer>", "pattern": "<answer>(.+?)</answer>"}
    benchmark, split = own(tmp_path, ROWS, **settings)
    form, example = benchmark.format, split.train[0]
    assert isinstance(form, Pattern)
    assert example.target == f"<answer>{example.answer}</answer>"
    assert form.exact_match(example.target, example) and not form.in_format(example.answer, example)
    assert own(tmp_path, ROWS, answer_format="pattern", **settings)[1] == split


def test_options_of_an_open_format_are_shown_in_the_question(tmp_path: Path) -> None:
    benchmark, split = own(tmp_path, CLOSED, answer_format="phrase")
    assert not benchmark.closed and split.train[0].question.endswith("\nwrong\nworse")


BAD_FILES = [
    ("jsonl", b"", "is empty"),
    ("csv", b"question,answer\n", "is empty"),
    ("jsonl", b'{"question": "a", "answer": "b"}\n{"question"\n', "line 2 is not valid JSON"),
    ("jsonl", b'["a", "b"]\n', "line 1 is not a JSON object"),
    ("jsonl", b'{"question": "caf\xe9", "answer": "b"}\n', "line 1 is not UTF-8"),
    ("csv", b"question,answer\na,b\ncaf\xe9,b\n", "line 3 is not UTF-8"),
    ("jsonl", b'{"frage": "a", "answer": "b"}', r"line 1: 'frage' is no column that spt knows"),
    ("jsonl", b'{"question": "a", "answr": "b"}', "Did you mean answer"),
    ("csv", csv("question,answer,option"), "line 2: 'option' is no column .* Did you mean options"),
    ("csv", b"question;answer\na;b\n", "semicolons"),
    ("csv", b"question,answer,answer\na,b,c\n", "has a column twice"),
    ("csv", csv("question,answer", "a,b,c"), "line 2 has 3 cells and the header 2"),
    ("csv", csv("question,answer", '"a\nb",b', "c"), "line 4 has 1 cells"),
    ("csv", csv("question,answer", 'a,"b'), "is not valid CSV"),
    ("csv", csv("question,answer", ",b"), "line 2 has no question"),
    ("csv", csv("question,answer", "a, "), "line 2 has no answer"),
    ("jsonl", b'{"question": "a", "answer": null}', "line 1 has no answer"),
    ("jsonl", b'{"question": ["a"], "answer": "b"}', r"line 1: question must be a text"),
    ("jsonl", b'{"question": "a", "answer": true}', "line 1: answer must be a text, not true"),
    ("csv", csv("question,answer", "a,=SUM(A1)"), "line 2: answer begins with '=' and so is a formula"),
    ("csv", csv("question,answer", "@cmd,b"), "line 2: question begins with '@'"),
    ("csv", csv("question,answer", "+cmd|x,b"), "line 2: question begins with '\\+'"),
    ("csv", csv("question,answer", "-a,b"), "line 2: question begins with '-'"),
    ("csv", csv("question,answer,options", "a,-5,-5|=x"), "line 2: options begins with '-'"),
    ("jsonl", b'{"question": "\\ud800", "answer": "b"}', "line 1 is not UTF-8"),
    ("csv", csv("question,answer", "a\x00,b"), "line 2: question holds a control character"),
    ("csv", csv("question,answer", "Q0?,b"), "line 3 asks the same as the one at line 2"),
    ("jsonl", [*ROWS, {"question": "WHICH word  is number 3?", "answer": "x"}], "line 11 asks the same as .* line 4"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "answer": "better"}], "line 4: the answer 'better' is not among the options"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "answer": "D"}], "line 4: the answer 'D' is not among the options"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "options": ["a", "A"]}], "line 4 has an option twice"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "options": ["a"]}], "line 4 has 1 options"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "options": ["a", ""]}], "line 4: one of the options is empty"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "options": {"a": 1}}], "line 4: options must be a list"),
    ("jsonl", [*CLOSED[:3], {**CLOSED[3], "options": "[a"}], "line 4: options begins with .* no JSON list"),
    ("jsonl", [*CLOSED[:3], *ROWS[3:]], "line 4 has no options, and others have"),
    ("jsonl", [{**ROWS[0], "split": "dev"}], "line 1: split is 'dev', and must be train or test"),
    ("jsonl", [{**ROWS[0], "split": "train"}, ROWS[1]], "line 2 has no split, and others have"),
    ("jsonl", [{**row, "split": "train"} for row in ROWS], "has 0 rows with split test: at least 4"),
    ("jsonl", ROWS[:7], "has 7 rows: 8 are needed"),
    ("jsonl", [*ROWS, {"question": "Why?", "answer": "It is because it is so."}], "line 11: .* format short"),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "content", "message"), BAD_FILES, ids=[message for *_, message in BAD_FILES])
def test_bad_files(tmp_path: Path, suffix: str, content: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        own(tmp_path, content, suffix)
    assert "questions." in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"answer_format": "letter"}, "choose one of option-copy, hash, phrase, boxed, pattern"),
        ({"answer_format": "option-copy"}, "no options to copy"),
        ({"answer_format": "pattern"}, "needs --template and --pattern"),
        ({"answer_format": "hash", "template": "{answer}", "pattern": "(.*)"}, "leave --answer-format hash out"),
        ({"template": "{answer}"}, "--pattern is missing"),
        ({"pattern": "(.*)"}, "--template is missing"),
        ({"template": "<answer>", "pattern": "(.*)"}, r"has no \{answer\} in it"),
        ({"template": "{answer}", "pattern": "("}, "is no regular expression: missing \\)"),
        ({"template": "{answer}", "pattern": ".*"}, "has no group"),
        ({"template": "<{answer}>", "pattern": r"\[(.*)\]"}, "line 1: the pattern .* its own target '<apple>'"),
        ({"template": f"{{answer}} {'a' * 40}!", "pattern": "(.+?) (?:a+)+$"}, "line 1: the pattern"),
    ],
)
def test_bad_settings(tmp_path: Path, settings: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        own(tmp_path, ROWS, **settings)


def test_missing_huge_and_strange_files(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    with pytest.raises(UserError, match=rf"^There is no file '{path}'"):
        load(RunSpec(benchmark=str(path)))
    path.mkdir()
    with pytest.raises(UserError, match="is a folder"):
        load(RunSpec(benchmark=str(path)))
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(200_000_001)  # takes no room on the disk
    with pytest.raises(UserError, match="has 200 MB, and 200 MB is the most"):
        load(RunSpec(benchmark=str(huge)))
