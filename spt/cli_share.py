"""The commands that take a finished run elsewhere: `python -m spt report | export | push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from spt.store import Store

out = Console()

RUN = typer.Argument(help="id of a finished run, as `python -m spt runs` shows it")
OUTPUT = typer.Option("--output", "-o", help="file to write; default: the run's id, in this folder")


def report(run: Annotated[str, RUN], output: Annotated[Path | None, OUTPUT] = None) -> None:
    """Write a finished run as one HTML file with charts and answers, to mail, keep or print.

    Needs no network to make or to read. A file of that name is replaced.

    Example: [bold]python -m spt report RUN -o report.html[/bold]
    """
    from spt.files import replacing
    from spt.report import html_report

    folder = Store().get(run)
    text = html_report(folder)
    path = output or Path(f"{folder.id}.html")
    with replacing(path) as file:
        file.write(text.encode())
    _written(path)


def export(run: Annotated[str, RUN], output: Annotated[Path | None, OUTPUT] = None) -> None:
    """Write a finished run as one ZIP: prompt, result, every answer as CSV and Parquet, report.

    The same run gives the same bytes. A file of that name is replaced.

    Example: [bold]python -m spt export RUN -o run.zip[/bold]
    """
    from spt.export import zip_run

    folder = Store().get(run)
    path = output or Path(f"{folder.id}.zip")
    zip_run(folder, path)
    _written(path)


def push(
    run: Annotated[str, RUN],
    repo: Annotated[str, typer.Option("--repo", help="repository on the hub, user/name; made if it is not there")],
    private: Annotated[bool, typer.Option("--private", help="only you can see it")] = False,
) -> None:
    """Upload the prompt of a finished run to the hub, with a model card. Needs HF_TOKEN.

    Example: [bold]python -m spt push RUN --repo user/name --private[/bold]
    """
    from spt.push import push_prompt

    out.print(escape(push_prompt(Store().get(run), repo, private)), highlight=False, soft_wrap=True)


def _written(path: Path) -> None:
    size = f"{path.stat().st_size / 1000:,.0f} kB"
    out.print(f"Wrote {escape(str(path.resolve()))} ({size})", highlight=False, soft_wrap=True)
