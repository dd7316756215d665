"""`python -m spt ask RUN "question"`: the answers of a finished run's three methods, drawn while they are written."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from spt.questions import Ask, Reply, Said
from spt.spec import METHODS
from spt.store import Store
from spt.view import method_title

out = Console()
err = Console(stderr=True)


def ask(
    run: Annotated[str, typer.Argument(help="id of a finished run, as `python -m spt runs` shows it")],
    question: Annotated[str, typer.Argument(help="a question, as the benchmark would put it")],
    option: Annotated[list[str] | None, typer.Option(help="multiple choice: one of the options; repeat it")] = None,
    reference: Annotated[str, typer.Option(help="the right answer, to mark right and wrong by the run's rule")] = "",
    json: Annotated[bool, typer.Option("--json", help="print the answers as JSON, and progress on stderr")] = False,
) -> None:
    """Ask a finished run a question: zero-shot, few-shot and soft prompt answer it side by side.

    Example: [bold]python -m spt ask RUN "What is the capital of Oman?" --reference Muscat[/bold]
    """
    asked = Ask.of(Store().get(run), question, option or [], reference)
    console = err if json else out
    with Live(_note("Starting"), console=console, auto_refresh=False, transient=json) as live:
        from spt.experiment import ModelCache  # torch: seconds, so the line is there first
        from spt.runner import answer

        reply = answer(asked, ModelCache(), lambda reply: live.update(drawn(asked, reply), refresh=True))
        assert reply is not None, "it does not wait for a busy device"
        live.update(drawn(asked, reply), refresh=True)
    if json:
        sys.stdout.write(reply.model_dump_json(indent=1) + "\n")


def drawn(ask: Ask, reply: Reply) -> RenderableType:
    """The answers so far, a row a method, and the options' log-probabilities where there are any."""
    if reply.state == "loading":
        return _note(reply.note)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("Method", "Answer", "Marks"):
        table.add_column(column, overflow="fold")
    for method in METHODS:
        said = reply.said.get(method, Said())
        table.add_row(method_title(method), _text(said), _marks(said))
    options = _options(ask, reply)
    return Group(table, options) if options is not None else table


def _note(note: str) -> Text:
    return Text(f"{note} …", style="dim")


def _text(said: Said) -> Text:
    if said.stopped_by is None:
        return Text(f"{said.text} …")
    return Text(said.text) if said.text else Text("(empty answer)", style="dim italic")


def _marks(said: Said) -> str:
    if said.stopped_by is None:
        return ""
    found = {"in format": said.in_format}
    if said.knows is not None:
        found = {("ranked first" if said.logprobs else "right"): said.knows, **found}
        if said.logprobs:
            found["exact match"] = said.exact_match
    words = [f"[green]{label}[/green]" if yes else f"[dim]not {label}[/dim]" for label, yes in found.items()]
    note = {"length": "cut off at the length limit", "loop": "stopped: repeats itself"}.get(said.stopped_by)
    return ", ".join([*words, *([note] if note else [])])


def _options(ask: Ask, reply: Reply) -> Table | None:
    """log p of every option under every method, and its share among the options; the highest is starred."""
    ranked = [method for method in METHODS if method in reply.said and reply.said[method].logprobs]
    if not ranked:
        return None
    table = Table(
        title="log p in nats, share among the options, * highest", title_justify="left", box=SIMPLE_HEAD,
        pad_edge=False, collapse_padding=True,
    )  # fmt: skip
    table.add_column("Option")
    for method in ranked:
        table.add_column(method_title(method), justify="right", no_wrap=True)
    for i, option in enumerate(ask.example.options):
        cells = []
        for method in ranked:
            said = reply.said[method]
            value, best = said.logprobs[i], said.logprobs[i] == max(said.logprobs)
            cell = f"{value:.2f} [dim]{said.shares[i]:4.0%}[/dim]{'*' if best else ' '}"
            cells.append(f"[bold]{cell}[/bold]" if best else cell)
        table.add_row(escape(option), *cells)
    return table
