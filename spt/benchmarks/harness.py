"""Tasks of lm-evaluation-harness as benchmarks: `--benchmark lm_eval:<task>` or `lm_eval:path/to/task.yaml`.

Needs `lm-eval`, which is imported here alone. The task says what is asked and what is right: `description` is the
instruction, `doc_to_text` the question, shown exactly as the task writes it (spt adds no `Question:` or `Answer:`),
`doc_to_target` and `doc_to_choice` the target and the choices. spt says how it is scored:

    multiple_choice   closed: the choices are ranked by likelihood, in form is what equals one of them
    generate_until    open: an answer ends at the task's stop strings; in form is what the task's `regex` filter finds
                      an answer in, or a short phrase where there is no such filter, or its own targets do not pass it

Rows: train from the task's training split, else its validation split; test from its test split, else validation. A task
with one split alone has it parted in halves by a hash of the question.

A task's YAML may name Python functions (`!function`), which lm-eval runs: use tasks that you trust. Data sets that are
code are not loaded (`datasets` has no way to).

Source and licence: the task's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from spt.benchmarks.base import Benchmark, Example
from spt.benchmarks.formats import AnswerFormat, OptionCopy, Pattern, ShortPhrase, Stops
from spt.benchmarks.hub_download import quiet
from spt.benchmarks.hub_rows import DroppedRow, Row, build
from spt.benchmarks.layout import Layout
from spt.spec import UserError

INSTALL = "pip install lm-eval==0.4.13"
SEED = "spt-harness-split"


def benchmark(name: str) -> Benchmark:
    """The benchmark of a task, read and checked. Raises UserError where lm-eval, the task or its data cannot be had."""
    task = _task(name)
    if task.OUTPUT_TYPE not in ("multiple_choice", "generate_until"):
        raise UserError(
            f"The task {name} is of type {task.OUTPUT_TYPE}: spt takes multiple_choice and generate_until tasks."
        )
    closed = task.OUTPUT_TYPE == "multiple_choice"
    raw, said = _splits(task, name)
    first = raw["train"][0]
    description = _description(task, first)
    form = _choices_form(task, raw) if closed else _open_form(task, raw["train"], name)

    def example(doc: Row) -> Example:
        return _guarded(_closed if closed else _open, task, doc, form, name)

    split = build(raw, form, example, f"lm_eval:{name}")
    ends_open = split.train[0].question[-1:].isspace()
    layout = Layout(
        before_question="",
        list_options=False,
        cue="",
        before_answer="" if ends_open else task.config.target_delimiter,
        after_instruction="",
        between=task.config.fewshot_delimiter,
    )
    return Benchmark(
        name=f"lm_eval:{task.config.task}",
        title=f"{task.config.task} (lm-evaluation-harness, {'multiple choice' if closed else 'open-ended'})",
        format=form,
        instruction=description,
        source=f"lm-evaluation-harness task {task.config.task}, version {task.VERSION}; {said}",
        licence="the task's",
        read=lambda data_dir: split,
        layout=layout,
    )


def require(name: str) -> None:
    """Raises UserError where lm-eval or the task's file is not here; imports nothing, so that it takes no time."""
    if find_spec("lm_eval") is None:
        raise UserError(f"lm_eval:{name} needs lm-evaluation-harness: {INSTALL}")
    if _is_file(name) and not Path(name).is_file():
        raise UserError(f"There is no task file {name}: give the path of a task's YAML.")


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _task(name: str) -> Any:
    """The one task of that name or file."""
    require(name)
    try:
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise UserError(f"lm-evaluation-harness cannot be imported ({error}): {INSTALL}") from None
    is_file = _is_file(name)
    with quiet("lm_eval"):
        try:
            manager = TaskManager(include_defaults=not is_file)  # its thousands of tasks take seconds to list
            if not is_file and name not in manager.all_tasks:
                raise UserError(f"lm-eval knows no task {name!r}: `lm_eval ls tasks` lists them, or give a YAML file.")
            tasks = list(manager.load(name)["tasks"].values())
        except UserError:
            raise
        except Exception as error:  # of the task's own: its YAML, its functions, its data
            raise UserError(f"lm-eval cannot load {name}: {_first_line(error)}") from error
    if len(tasks) != 1:
        names = ", ".join(str(task.config.task) for task in tasks[:8])
        raise UserError(f"{name} is a group of {len(tasks)} tasks ({names}, ...): choose one of them.")
    return tasks[0]


def _splits(task: Any, name: str) -> tuple[dict[str, Sequence[Row]], str]:
    """The rows of train and test, and a sentence on where they are from."""
    config = task.config
    docs: dict[str, Any] = {}  # by the split's name: some tasks call one split by two roles
    with quiet("lm_eval"):
        try:
            for split, read in (
                (config.training_split, task.training_docs),
                (config.validation_split, task.validation_docs),
                (config.test_split, task.test_docs),
            ):
                if split is not None and split not in docs:
                    docs[split] = [dict(doc) for doc in read()]
        except Exception as error:
            raise UserError(f"The rows of {name} cannot be read: {_first_line(error)}") from error
    tested = config.test_split or config.validation_split or config.training_split
    trained = next((s for s in (config.training_split, config.validation_split) if s and s != tested), None)
    if tested is None or not docs[tested]:
        raise UserError(f"The task {name} has no rows.")
    if trained is not None:
        if not docs[trained]:
            raise UserError(f"The split {trained} of {name} is empty: there is nothing to tune on.")
        return {"train": docs[trained], "test": docs[tested]}, f"tuned on {trained}, tested on {tested}"
    train, test = _halves(docs[tested], [str(task.doc_to_text(doc)) for doc in docs[tested]])
    if not train or not test:
        raise UserError(f"{name} has too few rows to tune on some and test on others.")
    return {"train": train, "test": test}, f"its one split, {tested}, parted in halves by a hash"


def _halves(docs: Sequence[Row], questions: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Two halves, the same ones each time, each in the task's order; the same question is in one of them alone."""
    ranks = {question: hashlib.sha256(f"{SEED}{question}".encode()).digest() for question in questions}
    first = set(sorted(ranks, key=lambda question: ranks[question])[: len(ranks) // 2])
    pairs = list(zip(docs, questions, strict=True))
    return [doc for doc, question in pairs if question in first], [
        doc for doc, question in pairs if question not in first
    ]


def _description(task: Any, doc: Row) -> str:
    text = task.config.description or ""
    return str(task.resolve_field(doc, text) or "") if isinstance(text, str) else ""


def _choices_form(task: Any, raw: dict[str, Sequence[Row]]) -> OptionCopy:
    longest = max(len(str(choice)) for docs in raw.values() for doc in docs for choice in task.doc_to_choice(doc))
    return OptionCopy(min(512, max(24, 8 + longest // 2)))


def _open_form(task: Any, docs: Sequence[Row], name: str) -> Stops:
    """The first form that most of the task's own targets are in: its regex filters, then the short phrase."""
    kwargs = task.config.generation_kwargs or {}
    until = kwargs.get("until") or [task.config.fewshot_delimiter]
    stops = [until] if isinstance(until, str) else list(until)
    tokens = int(kwargs.get("max_gen_toks", 256))
    pool = [target for doc in docs for target in _targets(task, doc)[:1]]
    forms: list[AnswerFormat] = []
    for pipeline in task.config.filter_list or ():
        for step in pipeline["filter"]:
            if step["function"] == "regex":
                expression = step.get("regex_pattern", r"#### (\-?[0-9\.\,]+)")  # lm-eval's own default
                which = int(step.get("group_select", 0))
                forms.append(Pattern(expression, max_new_tokens=tokens, whole=False, which=which, pool=pool))
    forms.append(ShortPhrase(tokens))
    asked = Example(question="?", answer="?", target="?")
    for form in forms:
        if 2 * sum(form.in_format(target, asked) for target in pool) > len(pool):
            return Stops(form, stops)
    raise UserError(
        f"The targets of {name} are neither in the form of a regex filter of the task nor short phrases, such as "
        f"{pool[0][:60]!r}: spt has no form to tune for."
    )


def _targets(task: Any, doc: Row) -> list[str]:
    target = task.doc_to_target(doc)
    return [str(each).strip() for each in (target if isinstance(target, list) else [target])]


def _guarded(make: Any, task: Any, doc: Row, form: AnswerFormat, name: str) -> Example:
    """An example by the task's own templates and functions, which may fail in any way."""
    try:
        made: Example = make(task, doc, form)
        return made
    except (DroppedRow, UserError):
        raise
    except Exception as error:
        raise UserError(f"The task {name} fails on one of its rows: {_first_line(error)}") from error


def _question(task: Any, doc: Row) -> str:
    text = task.doc_to_text(doc)
    if not isinstance(text, str):
        raise UserError(f"The task {task.config.task} has a question a choice (multiple inputs): spt takes others.")
    prefix = task.doc_to_prefix(doc)
    if not prefix:
        return text
    return f"{text}{'' if text[-1:].isspace() else task.config.target_delimiter}{prefix}"


def _closed(task: Any, doc: Row, form: AnswerFormat) -> Example:
    options = tuple(str(choice).strip() for choice in task.doc_to_choice(doc))
    gold = task.doc_to_target(doc)
    if isinstance(gold, list):
        raise DroppedRow("several right choices")
    if isinstance(gold, str):
        gold = options.index(gold.strip()) if gold.strip() in options else -1
    if not 0 <= gold < len(options):
        raise DroppedRow("no label")
    if options.count(options[gold]) > 1:
        raise DroppedRow("the right option stands twice")
    return Example(question=_question(task, doc), answer=options[gold], target=options[gold], options=options)


def _open(task: Any, doc: Row, form: AnswerFormat) -> Example:
    targets = [target for target in _targets(task, doc) if target]
    if not targets:
        raise DroppedRow("no label")
    inner = form.form if isinstance(form, Stops) else form
    answers = [(inner.find(target) or target) if isinstance(inner, Pattern) else target for target in targets]
    return Example(question=_question(task, doc), answer=answers[0], target=targets[0], aliases=tuple(answers[1:]))


def _first_line(error: BaseException) -> str:
    if type(error).__name__ == "DatasetGenerationError" and error.__cause__ is not None:
        error = error.__cause__  # it says nothing itself
    return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[0]}"
