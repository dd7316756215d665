"""`python -m spt sweep`: many runs by one file."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column, Table

from spt.console import Follow
from spt.events import Message
from spt.spec import RunSpec
from spt.store import RunFolder, Store
from spt.sweep import Outcome, Planned, Sweep, by_model, check, in_turn, plan, read
from spt.view import count, duration

out = Console()
err = Console(stderr=True)
QUIET = Console(quiet=True)

INTERRUPTED = 130
Engine = Literal["serial", "ray"]


def sweep(
    file: Annotated[Path, typer.Argument(help="YAML with models, benchmarks, seeds and settings")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="show the plan, with time and memory, and stop")] = False,
    engine: Annotated[Engine, typer.Option(help="serial = here, in turn; ray = on a Ray cluster")] = "serial",
    address: Annotated[str | None, typer.Option(help="of the Ray cluster; auto = the one of this machine")] = None,
    shared: Annotated[
        str | None, typer.Option("--store", help="with ray: fsspec address for runs, where SPT_HOME is not shared")
    ] = None,
) -> None:
    """Run models × benchmarks × seeds. What is finished is skipped, and what was broken off goes on.

    Exit status 1 where some runs failed, 130 where it was stopped.

    Example: [bold]python -m spt sweep recipes/small-open.yaml --dry-run[/bold]
    """
    grid, store = read(file), Store()
    check(grid, store)
    planned = plan(grid, store)
    if dry_run:
        _show_plan(grid, planned)
        return
    todo = [each.spec for each in planned if not each.done]
    _say_size(planned)
    if engine == "ray":
        from spt.sweep_ray import on_ray

        outcomes = _follow(on_ray(list(by_model(todo).values()), store, shared, address), len(todo), store)
    else:
        outcomes = _run(todo, store)
    failed = [each for each in outcomes if each.state == "failed"]
    for each in failed:
        err.print(f"[red]{escape(f'{each.spec.run_id}: {each.message}')}[/red]", highlight=False, soft_wrap=True)
    if any(each.state == "stopped" for each in outcomes):
        out.print("Stopped; the same command goes on from here.")
        raise typer.Exit(INTERRUPTED)
    if failed:
        err.print(f"{count(len(failed), 'run')} of {len(grid.specs)} failed; the same command tries them again.")
        raise typer.Exit(1)
    out.print(f"All {count(len(grid.specs), 'run')} are finished. `python -m spt rank {file}` ranks the models.")


def _say_size(planned: Sequence[Planned]) -> None:
    todo = [each for each in planned if not each.done]
    known = [each.seconds for each in todo if each.seconds is not None]
    left = f", about {duration(sum(known) * len(todo) / len(known))}" if known else ""
    done = len(planned) - len(todo)
    out.print(f"{count(len(planned), 'run')}: {done} finished before, {len(todo)} to do{left}.", highlight=False)


def _show_plan(grid: Sweep, planned: Sequence[Planned]) -> None:
    """The runs by model: how many, how long, how much memory, all from earlier runs on this machine."""
    whole = [Column(title, no_wrap=True) for title in ("Model", "Precision")]
    table = Table(*whole, "Benchmarks", "Runs", "Done", "Time left", "Memory", box=SIMPLE_HEAD, pad_edge=False)
    by_id = {each.spec.run_id: each for each in planned}
    for key, specs in by_model(grid.specs).items():
        mine = [by_id[spec.run_id] for spec in specs]
        todo = [each for each in mine if not each.done]
        known = [each.seconds for each in todo if each.seconds is not None]
        time_left = "–" if not todo else "unknown"
        if known:
            time_left = f"{'' if len(known) == len(todo) else 'at least '}{duration(sum(known))}"
        memory = max((each.memory_mb for each in todo if each.memory_mb is not None), default=None)
        table.add_row(
            escape(key.model),
            key.precision,
            escape(", ".join(dict.fromkeys(spec.benchmark for spec in specs))),
            str(len(mine)),
            str(len(mine) - len(todo)),
            time_left,
            "–" if memory is None else f"{memory / 1000:.1f} GB",
        )
    out.print(table)
    _say_size(planned)
    out.print("Time and memory are reckoned from earlier runs of the same model in this store.", highlight=False)


def _run(todo: Sequence[RunSpec], store: Store) -> list[Outcome]:
    """All runs in turn; the bar says what the present one is at."""
    signal.signal(signal.SIGTERM, _interrupt)
    bar, follow = _bar(), dict[str, Follow]()

    def listen(folder: RunFolder, message: Message) -> None:
        if folder.id not in follow:
            follow.clear()
            follow[folder.id] = Follow(QUIET, folder)
        follow[folder.id](message)
        bar.update(bar.task_ids[0], description=escape(f"{folder.id}: {follow[folder.id].view.headline}"))

    return _follow(in_turn(by_model(todo).values(), store, listen), len(todo), store, bar)


def _bar() -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}")
    return Progress(*columns, console=out, disable=not out.is_terminal)


def _follow(running: Iterator[Outcome], total: int, store: Store, bar: Progress | None = None) -> list[Outcome]:
    """Show outcomes as they come, and how long the rest will take at this pace."""
    bar, outcomes, start = bar or _bar(), list[Outcome](), time.monotonic()
    task = bar.add_task("Starting", total=total, left="")
    with bar:
        for outcome in running:
            outcomes.append(outcome)
            left = (time.monotonic() - start) / len(outcomes) * (total - len(outcomes))
            bar.update(task, advance=1, left=f"about {duration(left)} left" if left else "")
            _show_outcome(outcome, store)
    return outcomes


def _show_outcome(outcome: Outcome, store: Store) -> None:
    line: str = outcome.state
    if outcome.state in ("finished", "done before"):
        result = store.get(outcome.spec.run_id).result()
        assert result is not None
        rates = " / ".join(f"{scores.exact_match.rate:.0%}" for scores in list(result.methods.values())[:3])
        line = f"exact match {rates}"
    where = f" on {outcome.where}" if outcome.where else ""
    out.print(f"{outcome.spec.run_id}: {escape(line)} ({duration(outcome.seconds)}{where})", highlight=False)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
