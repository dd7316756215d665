"""A file of the user's as a benchmark: `--benchmark questions.jsonl` or `.csv`.

A row of JSONL, of which only `question` and `answer` are needed:
    {"question": "Which ocean is the largest?", "answer": "Pacific", "options": ["Atlantic", "Pacific"],
     "aliases": [], "topic": "geography", "split": "train"}
In CSV `options` and `aliases` are a JSON list or separated by `|`. The answer may be an option's text or its letter.

The format is one of FORMATS, by default option copy where there are options and short phrase where there are none; or
a template with `{answer}` in it, and the regular expression that says what is in that form. An answer that holds
`####` or `\\boxed{}` is a worked solution in that format: all of it is the target, and the marked part the answer.

Without a `split` column a fifth of the rows are the test split, chosen by a hash of the question: always the same.

Source and licence: the user's.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from spt.benchmarks.base import Benchmark, Example, Split
from spt.benchmarks.formats import AnswerFormat, Boxed, HashAnswer, OptionCopy, Pattern, ShortPhrase
from spt.benchmarks.formats.boxed import boxed_answer
from spt.benchmarks.formats.pattern import MARK
from spt.benchmarks.hub_rows import COPY_INSTRUCTION, with_options
from spt.benchmarks.own_file import OwnRow, read
from spt.spec import UserError

FORMATS = ("option-copy", "hash", "phrase", "boxed", "pattern")
MIN_ROWS = 4  # of each split: three examples for few-shot and one more
SEED = "spt-split"

INSTRUCTIONS = {
    "option-copy": COPY_INSTRUCTION,
    "hash": 'Questions and answers. The last line of each answer is written in the form "#### answer".',
    "phrase": "Answer the question with the answer alone: a short phrase on one line, no sentence, no full stop.",
    "boxed": "Problems and their solutions. The last line of each holds the final answer in \\boxed{}.",
}


def benchmark(file: str, answer_format: str | None, template: str | None, pattern: str | None) -> Benchmark:
    """The benchmark of a file, read and checked. Raises UserError where the file or a setting is wrong."""
    path = Path(file)  # absolute, by RunSpec
    kind = _kind(answer_format, template, pattern)
    rows = read(path)
    if kind is None:
        kind = "option-copy" if rows[0].options else "phrase"
    if kind == "option-copy" and not rows[0].options:
        raise UserError(f"{path} has no options to copy: add a column options, or choose another --answer-format.")
    form = _form(kind, template or MARK, pattern or "", rows)
    examples = [_example(row, kind, form) for row in rows]
    for row, example in zip(rows, examples, strict=True):
        _check(path, row, example, form)
    split = _split(path, rows, examples)
    instruction = INSTRUCTIONS.get(kind, f"Questions and answers. Each answer is written in the form {template}")
    return Benchmark(
        name=path.name,
        title=f"{path.name} ({'multiple choice' if form.closed else 'open-ended'})",
        format=form,
        instruction=instruction,
        source=f"your file {path.name}",
        licence="yours",
        read=lambda data_dir: split,
    )


def _kind(answer_format: str | None, template: str | None, pattern: str | None) -> str | None:
    if answer_format is not None and answer_format not in FORMATS:
        raise UserError(f"--answer-format {answer_format!r} is not known: choose one of {', '.join(FORMATS)}.")
    if template is None and pattern is None:
        if answer_format == "pattern":
            raise UserError("--answer-format pattern needs --template and --pattern: what a target and an answer are.")
        return answer_format
    if answer_format not in (None, "pattern"):
        raise UserError(f"--template and --pattern are a format: leave --answer-format {answer_format} out.")
    if template is None or pattern is None:
        missing, what = ("--template", "the target") if template is None else ("--pattern", "an answer in that form")
        raise UserError(f"{missing} is missing, which says what {what} is: give both, --template and --pattern.")
    if MARK not in template:
        raise UserError(f"--template {template!r} has no {MARK} in it, where the answer is to stand.")
    return "pattern"


def _form(kind: str, template: str, pattern: str, rows: list[OwnRow]) -> AnswerFormat:
    """The format, with room for the longest target: a token is seldom shorter than two characters."""
    longest = max(len(text) for row in rows for text in (row.answer, *row.options)) + len(template)
    tokens = min(1024, max(24, 8 + longest // 2))
    if kind == "option-copy":
        return OptionCopy(tokens)
    if kind == "hash":
        return HashAnswer(tokens)
    if kind == "boxed":
        return Boxed(tokens)
    if kind == "phrase":
        return ShortPhrase(tokens)
    form = Pattern(pattern, template, tokens, pool=[template.replace(MARK, row.answer) for row in rows])
    if form.expression.groups < 1:
        raise UserError(f"--pattern {pattern!r} has no group: put the answer's part in brackets, as in <a>(.+?)</a>.")
    return form


def _example(row: OwnRow, kind: str, form: AnswerFormat) -> Example:
    if kind == "option-copy":
        return with_options(row.question, row.options, row.options.index(row.answer), row.topic)
    answer = target = row.answer
    if kind == "hash":
        answer = target.rpartition("####")[2].strip()
        target = target if "####" in target else f"#### {answer}"
    elif kind == "boxed":
        answer = boxed_answer(target) or target
        target = target if "\\boxed" in target else f"\\boxed{{{answer}}}"
    elif isinstance(form, Pattern):
        target = form.template.replace(MARK, answer)
    # Options in an open format are part of what is asked.
    options = "".join(f"\n{option}" for option in row.options)
    return Example(question=row.question + options, answer=answer, target=target, aliases=row.aliases, topic=row.topic)


def _check(path: Path, row: OwnRow, example: Example, form: AnswerFormat) -> None:
    """Raises UserError where the row's own target is not right and in form, so that no answer could be."""
    trimmed = form.trim(f"{example.target}\n")[0]
    if trimmed == example.target and form.exact_match(trimmed, example):
        return
    if isinstance(form, Pattern):
        raise UserError(
            f"{path}, row at line {row.line}: the pattern {form.expression.pattern!r} does not find the answer in its "
            f"own target {example.target!r}: mend the pattern or the template."
        )
    raise UserError(
        f"{path}, row at line {row.line}: the answer {row.answer[:80]!r} does not fit the format {form.name}: change "
        "it, or choose another --answer-format."
    )


def _split(path: Path, rows: list[OwnRow], examples: list[Example]) -> Split:
    """By the column, else by the hash. Raises UserError where a split has too few rows."""
    tested = [row.split == "test" for row in rows]
    if not rows[0].split:
        if len(rows) < 2 * MIN_ROWS:
            raise UserError(f"{path} has {len(rows)} rows: {2 * MIN_ROWS} are needed, to tune and to test on.")
        order = sorted(range(len(rows)), key=lambda i: hashlib.sha256(f"{SEED}{rows[i].question}".encode()).digest())
        chosen = set(order[: max(MIN_ROWS, round(len(rows) / 5))])
        tested = [i in chosen for i in range(len(rows))]
    train = [example for example, test in zip(examples, tested, strict=True) if not test]
    test = [example for example, test in zip(examples, tested, strict=True) if test]
    for name, part in (("train", train), ("test", test)):
        if len(part) < MIN_ROWS:
            raise UserError(f"{path} has {len(part)} rows with split {name}: at least {MIN_ROWS} are needed.")
    return Split(train=train, test=test)
