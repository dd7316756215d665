"""What the command line draws: progress while a run goes, and the tables at its end. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table

from spt.events import (
    Checkpoint,
    MemoryReduced,
    Message,
    MethodScored,
    PhaseStarted,
    Predictions,
    PromptFiles,
    Result,
)
from spt.memory import Estimate, gigabytes
from spt.metrics import Agreement, MethodScores, Rate
from spt.preview import Preview
from spt.store import RunFolder
from spt.view import PHASE_TITLES, RunView, count, duration, method_title

MARKS = {"good": ("+", "green"), "bad": ("!", "yellow"), "neutral": ("·", "dim")}  # of a finding


class Follow:
    """Draws a run from its messages: a bar on a terminal, and a line for each phase and score where there is none."""

    def __init__(self, console: Console, folder: RunFolder) -> None:
        self.console = console
        self.view = RunView.of(folder.events(), folder.spec)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self.task = self.bar.add_task("Starting", total=1.0, left="")

    def __call__(self, message: Message) -> None:
        """Take in one message of the run."""
        if isinstance(message, Predictions | Checkpoint | PromptFiles):
            return
        self.view.update([message])
        if isinstance(message, MemoryReduced):
            self.console.print(f"[yellow]{escape(message.detail)}[/yellow]", highlight=False)
        if self.console.is_terminal:
            left = self.view.seconds_left
            self.bar.update(
                self.task,
                description=escape(self._line()),
                completed=self.view.fraction,
                left="" if left is None else f"{duration(left)} left",
            )
        elif isinstance(message, PhaseStarted):
            self.console.print(escape(message.detail or f"{PHASE_TITLES[message.phase]} ..."), highlight=False)
        elif isinstance(message, MethodScored):
            self.console.print(f"{method_title(message.method)}: {_scores(message.scores)}", highlight=False)

    def _line(self) -> str:
        view, line = self.view, self.view.headline
        if view.phase == "tuning" and view.losses:
            line += f", loss {view.losses[max(view.losses)].loss:.3f}"
        if view.phase == "lora_tuning" and view.lora_losses:
            line += f", loss {view.lora_losses[max(view.lora_losses)].loss:.3f}"
        return line


@contextmanager
def follow_judge(console: Console) -> Iterator[tuple[Callable[[int, int], None], Callable[[str], None]]]:
    """A bar of judged answers, where there is a terminal; gives what hears of (done, total) and of downloads."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f} of {task.total:.0f}"),
        console=console, disable=not console.is_terminal,
    )  # fmt: skip
    task = bar.add_task("Judging answers", total=1)

    def listen(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total, description="Judging answers")

    with bar:
        yield listen, lambda note: bar.update(task, description=escape(note))


def _scores(scores: MethodScores) -> str:
    return (
        f"format {scores.format.rate:.2f}, knowledge {scores.knowledge.rate:.2f}, "
        f"exact match {scores.exact_match.rate:.2f}"
    )


def rate_cell(rate: Rate) -> str:
    """`0.56 [0.44, 0.68]`."""
    return f"{rate.rate:.2f} [dim]\\[{rate.low:.2f}, {rate.high:.2f}][/dim]"


def show_result(console: Console, result: Result, folder: RunFolder) -> None:
    """The final table of a run, what it cost and where it lies."""
    items = next(iter(result.methods.values())).format.n
    title = f"{result.spec.model} on {result.spec.benchmark}, {count(items, 'test item')}"
    table = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("Method", "Format", "Knowledge", "Exact match"):
        table.add_column(column, no_wrap=True)
    for method in result.spec.methods:
        if method in result.methods:
            scores = result.methods[method]
            shown = scores.shown
            table.add_row(method_title(method), *map(rate_cell, (shown.format, shown.knowledge, shown.exact_match)))
    console.print(table)
    by: str = next(iter(result.methods.values())).shown.knowledge_by
    if result.judge is not None:
        by = f"judge ({escape(result.judge.model)}), format and exact match by rule"
    console.print(f"In brackets: 95 % Wilson intervals. Knowledge by {by}.", highlight=False)
    _show_judge(console, result)
    for finding in result.analysis.findings if result.analysis else ():
        mark, style = MARKS[finding.tone]
        line = Table.grid(padding=(0, 1))  # a hanging indent
        line.add_row(f"[{style}]{mark}[/{style}]", escape(finding.text))
        console.print(line, highlight=False)
    for name, tuning in (("Soft prompt", result.tuning), ("LoRA", result.lora)):
        if tuning is not None:
            console.print(
                f"{name}: {tuning.trainable_parameters:,} trainable parameters ({tuning.trainable_share:.5%} of the "
                f"model), {count(tuning.steps, 'step')} in {duration(tuning.seconds)}.",
                highlight=False,
            )
    console.print(
        f"Whole run: {duration(sum(result.seconds.values()))} on {escape(result.device)}, "
        f"{escape(str(result.model['precision']))}, peak memory {result.peak_memory_mb:,.0f} MB.",
        highlight=False,
    )
    console.print(f"Run folder: {escape(str(folder.path))}", highlight=False, soft_wrap=True)


def _show_judge(console: Console, result: Result) -> None:
    """What the judge said beside the rule, and how far the two agree; nothing without a judge."""
    judged = {method: scores.judge for method, scores in result.methods.items() if scores.judge is not None}
    if result.judge is None or not judged:
        return
    table = Table(title=f"Judged by {escape(result.judge.model)}", title_justify="left")
    for column in ("Method", "Format", "Knowledge", "Exact match", "Kappa format", "Kappa knowledge", "No verdict"):
        table.add_column(column)
    for method, scores in judged.items():
        table.add_row(
            method_title(method),
            *map(rate_cell, (scores.in_format, scores.knowledge, scores.exact)),
            *map(_agreement, (scores.agreement_format, scores.agreement_knowledge)),
            str(scores.unparsed),
        )
    console.print(table)
    console.print(
        "Kappa: agreement of rule and judge beyond chance (Cohen), with the share of equal verdicts. Answers on which "
        "the judge gave no readable verdict keep the rule's.",
        highlight=False,
    )


def _agreement(agreement: Agreement) -> str:
    if agreement.agree is None:
        return "-"
    kappa = "-" if agreement.kappa is None else f"{agreement.kappa:.2f}"
    return f"{kappa} [dim]({agreement.agree:.0%} of {agreement.n})[/dim]"


def show_preview(console: Console, shown: Preview) -> None:
    """Counts, and rows with the target marked."""
    dropped = "".join(f"\n  dropped  {count}  {reason}" for reason, count in shown.dropped.items())
    kind = "closed" if shown.closed else "open"
    console.print(f"[bold]{escape(shown.title)}[/bold]", highlight=False)
    console.print(
        escape(
            f"  format   {kind}: {shown.format}\n  from     {shown.source}\n  licence  {shown.licence}\n"
            f"  rows     {shown.train} train, {shown.test} test{dropped}"
        ),
        highlight=False,
    )
    for number, row in enumerate(shown.rows, start=1):
        console.rule(escape(f"train row {number}{f' · {row.topic}' if row.topic else ''}"))
        # Marked by brackets as well as by colour: the output may go to a file.
        marked = f"[reverse]⟦{escape(row.target)}⟧[/reverse]"
        console.print(escape(row.context) + marked, highlight=False, soft_wrap=True)


def show_estimate(console: Console, estimate: Estimate) -> None:
    """The parts of a memory estimate, their sum, and what the device has."""
    table = Table(title=escape(f"{estimate.model} in {estimate.precision}"), title_justify="left", box=SIMPLE_HEAD)
    table.add_column("Part")
    table.add_column("Needs", justify="right")
    for name, size in estimate.parts.items():
        table.add_row(name, gigabytes(size))
    table.add_section()
    table.add_row("at once, at most", gigabytes(estimate.total))
    console.print(table)
    work = estimate.work
    lengths = " (typical lengths: the benchmark is not read)" if work.assumed else ""
    console.print(
        f"{count(estimate.parameters, 'parameter')}; {count(work.rows, 'row')} a step of up to {work.row_tokens} "
        f"tokens, prompts of up to {work.context_tokens}{lengths}. Tuning and answering take turns: the larger counts.",
        highlight=False,
    )
    if estimate.rough:
        console.print("Activations are a rule of thumb: this architecture could not be tried.", highlight=False)
    colour = {"fits": "green", "tight": "yellow", "does not fit": "red"}[estimate.verdict]
    console.print(f"[{colour}]{escape(estimate.sentence)}[/{colour}]", highlight=False)


def show_facts(console: Console, facts: dict[str, Any]) -> None:
    """Facts by group, as `doctor.report` gives them: a line each."""
    table = Table.grid(padding=(0, 2))
    for group, value in facts.items():
        rows = value.items() if isinstance(value, dict) else [("", value)]
        for number, (name, fact) in enumerate(rows):
            table.add_row("" if number else f"[bold]{escape(group)}[/bold]", escape(name), escape(_fact(fact)))
    console.print(table, highlight=False)


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(map(_fact, value))
    if isinstance(value, dict):
        return ", ".join(f"{name} {_fact(fact)}" for name, fact in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
