"""The command line: `python -m spt run | rescore | runs | compare | ask | report | export | push | models | …`.

Loads torch only for a run and for its memory.
"""

from __future__ import annotations

import inspect
import signal
import sys
import time
from collections.abc import Callable, Collection
from json import dumps
from types import FrameType
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from spt import cli_ask, cli_compare, cli_eval, cli_rank, cli_share, cli_sweep, queue
from spt.console import Follow, follow_judge, show_facts, show_result
from spt.events import Message, Result
from spt.judge import LOCAL_JUDGES, JudgeSettings
from spt.preflight import preflight
from spt.spec import RunSpec, UserError
from spt.spec import option as option_name
from spt.store import RunFolder, Store
from spt.view import RunView, count

app = typer.Typer(
    help="Measure what a language model knows apart from whether it writes it the way a benchmark wants.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
out = Console()
err = Console(stderr=True)

JUDGE = typer.Option(
    "--judge", help=f"model that judges open answers: at --judge-url, or loaded here ({', '.join(LOCAL_JUDGES)}, any)"
)
JUDGE_URL = typer.Option("--judge-url", help="OpenAI-compatible endpoint of the judge; its key in SPT_JUDGE_API_KEY")

INTERRUPTED = 130  # exit status of a process that ended on Ctrl-C


def main() -> None:
    """Run the command line. A UserError becomes one sentence on stderr and exit status 2."""
    try:
        app(prog_name="python -m spt")
    except UserError as error:
        _complain(str(error))
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _complain(sentence: str) -> None:
    err.print(f"[red]{escape(sentence)}[/red]", highlight=False, soft_wrap=True)


def _run(spec: RunSpec, accept_terms: bool, again: bool, json: bool, judge: JudgeSettings | None) -> None:
    """Make or show a run, have it judged where a judge is given, and print its result."""
    from spt import presets
    from spt.benchmarks import canonical, for_spec
    from spt.rescore import rows_changed

    spec = canonical(spec)
    if judge is not None:
        from spt.rescore import require_open

        require_open(for_spec(spec))  # before the minutes that a run takes
    console = err if json else out
    preset = presets.PRESETS.get(spec.model)
    if accept_terms and preset is not None and preset.terms:
        console.print(escape(preset.terms), highlight=False)
        presets.accept_terms(spec.model)

    store = Store()
    if again or not RunFolder(store.root / spec.run_id, spec).finished():
        preflight(spec)  # before torch, which takes seconds, and whether or not the device is free
    made = not (store.root / spec.run_id).exists()  # by this very call: then it may be taken away again
    folder = store.create(spec)
    if folder.finished() and not again:
        console.print(f"Run {folder.id} is finished; its stored result (--again makes it anew):", highlight=False)
        if rows_changed(folder):
            _complain("The questions have changed since this run was made: --again runs the present ones.")
    else:
        _execute(folder, console, again, made)
    if judge is not None:
        try:
            _judge(folder, judge, console)
        except UserError as error:  # the run itself stands
            go_on = judge.command(folder.id)
            hint = "" if go_on in str(error) else f" The run itself stands; `{go_on}` has it judged later."
            _complain(str(error) + hint)
    result = folder.result()
    assert result is not None, "a finished run has a result"
    _print(result, folder, json)


def _print(result: Result, folder: RunFolder, json: bool) -> None:
    if json:
        sys.stdout.write(result.model_dump_json(by_alias=True, indent=1) + "\n")
    else:
        show_result(out, result, folder)


def _judge(folder: RunFolder, settings: JudgeSettings, console: Console) -> Result:
    from spt.runner import judge_run

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with follow_judge(console) as (listen, report):
            return judge_run(folder, settings, listen, report)
    except KeyboardInterrupt:
        console.print("Stopped; the verdicts so far are kept, and this goes on from here:", highlight=False)
        console.print(f"  {escape(settings.command(folder.id))}", highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED) from None


def _execute(folder: RunFolder, console: Console, again: bool, made: bool) -> None:
    """Run to the end, or exit: 130 when stopped, 1 when failed. UserError where nothing was begun."""
    spec = folder.spec
    if folder.status() == "running":
        raise UserError(f"Run {folder.id} is running already, in another process; wait for it or stop it there.")
    events = folder.events()
    folder.clear_stop()
    if folder.has_work() and not again:
        done = len(RunView.of(events, folder.spec).losses)
        console.print(f"Going on with run {folder.id}: {done} of {count(spec.steps, 'step')} done.", highlight=False)
    else:
        console.print(f"Run {folder.id}", highlight=False)
    follow = Follow(console, folder)

    def listen(message: Message) -> None:
        queue.cancel(folder.id)  # if the app had queued it: it is executed here and now, no longer there
        follow(message)

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with follow.bar:
            from spt.experiment import ModelCache  # torch: seconds, so the bar is there first
            from spt.memory import warning
            from spt.runner import execute

            if (sentence := warning(spec)) is not None:
                err.print(f"[yellow]{escape(sentence)}[/yellow]", highlight=False, soft_wrap=True)
            status = execute(folder, ModelCache(), listen, again=again)
    except UserError as error:
        if made and not folder.has_work():
            folder.delete()  # an unknown model, a busy device: there is no run to keep
            raise
        if folder.events() == events:
            raise  # not begun, as where the device is busy: all that was there is there still
        _complain(str(error))
        raise typer.Exit(1) from None
    except Exception as error:
        if follow.view.state != "failed":  # not noted in the run folder: nothing else would tell
            raise
        _complain(f"{follow.view.message} The traceback is in {folder.path / 'events.jsonl'}.")
        raise typer.Exit(1) from error
    if status != "finished":
        console.print("Stopped; the same command goes on from here:", highlight=False)
        console.print(f"  {escape(folder.spec.command())}", highlight=False, soft_wrap=True)
        raise typer.Exit(INTERRUPTED)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt  # SIGTERM stops a run as Ctrl-C does


def _with_spec_options(only: Collection[str] = tuple(RunSpec.model_fields)) -> Callable[[Any], Any]:
    """Give a command one option per RunSpec field, with its help and default, in place of **settings."""

    def decorate(command: Any) -> Any:
        keyword = inspect.Parameter.KEYWORD_ONLY
        options = []
        for name, field in RunSpec.model_fields.items():
            envvar = "SPT_DATA_DIR" if name == "data_dir" else None
            option = typer.Option(option_name(name), help=field.description, envvar=envvar)
            several = isinstance(field.default, tuple)
            kind, default = (list[str], []) if several else (field.annotation, field.default)
            options.append(inspect.Parameter(name, keyword, default=default, annotation=Annotated[kind, option]))
        options = [option for option in options if option.name in only]
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
        parameters = [*options, *(p.replace(kind=keyword) for p in own)]
        command.__signature__ = inspect.Signature(parameters)
        command.__annotations__ = {p.name: p.annotation for p in parameters}
        return command

    return decorate


@app.command("run")
@_with_spec_options()
def run_command(
    accept_terms: Annotated[bool, typer.Option("--accept-terms", help="accept the model's terms, shown first")] = False,
    again: Annotated[bool, typer.Option("--again", help="forget what is stored of this run and make it anew")] = False,
    json: Annotated[bool, typer.Option("--json", help="print result.json, and progress on stderr")] = False,
    judge: Annotated[str | None, JUDGE] = None,
    judge_url: Annotated[str | None, JUDGE_URL] = None,
    **settings: Any,
) -> None:
    """Compare zero-shot, few-shot and soft-prompt answers of a model on a benchmark.

    The same settings are the same run: a finished one is shown, an unfinished one goes on where it stopped.

    Example: [bold]python -m spt run --model bundled --benchmark capitals --steps 80[/bold]
    """
    _run(RunSpec.parse(**settings), accept_terms, again, json, JudgeSettings.parse(judge, judge_url))


@app.command()
def rescore(
    run: Annotated[str, typer.Argument(help="id of a finished run, as `python -m spt runs` shows it")],
    judge: Annotated[str | None, JUDGE] = None,
    judge_url: Annotated[str | None, JUDGE_URL] = None,
    json: Annotated[bool, typer.Option("--json", help="print result.json, and progress on stderr")] = False,
) -> None:
    """Recompute the metrics of a run from its stored answers, without its model; with a judge where one is given.

    Example: [bold]python -m spt rescore RUN --judge Qwen/Qwen3-32B --judge-url http://localhost:8000/v1[/bold]
    """
    from spt.runner import rescore_run

    settings = JudgeSettings.parse(judge, judge_url)
    folder = Store().get(run)
    result = rescore_run(folder) if settings is None else _judge(folder, settings, err if json else out)
    _print(result, folder, json)


@app.command()
def runs() -> None:
    """List the runs stored on this machine, the last one first.

    Example: [bold]python -m spt runs[/bold]
    """
    store = Store()
    problems = store.problems()
    table = Table(Column("Run", no_wrap=True), "Status", "Last change", box=SIMPLE_HEAD)  # ids are there to be copied
    for folder in store.runs():
        changed = time.strftime("%Y-%m-%d %H:%M", time.localtime(folder.changed()))
        status: str = folder.status()
        try:
            folder.result()
        except UserError as error:
            status = "unreadable"
            problems.append(str(error))
        table.add_row(*map(escape, (folder.id, status, changed)))
    out.print(table if table.row_count else f"No runs yet in {store.root}.")
    for problem in problems:
        _complain(problem)


app.command()(cli_compare.compare)
app.command()(cli_ask.ask)
app.command()(cli_share.report)
app.command()(cli_share.export)
app.command()(cli_share.push)
app.command()(cli_sweep.sweep)
app.command()(cli_rank.rank)
app.command("eval")(cli_eval.evaluate)


@app.command()
def models() -> None:
    """List the models that have a name here; any hub id, folder of safetensors or GGUF file works too.

    Example: [bold]python -m spt models[/bold]
    """
    from spt.presets import PRESETS

    whole = [Column(title, no_wrap=True) for title in ("--model", "Kind", "From")]
    table = Table(*whole, "Licence", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for preset in PRESETS.values():
        source = preset.source + (", gated" if preset.gated else "") + (", terms" if preset.terms else "")
        table.add_row(*map(escape, (preset.name, preset.kind, source, preset.licence)))
    out.print(table)
    out.print("terms: to be accepted with --accept-terms before the first use. gated: needs a token in HF_TOKEN.")


@app.command()
def benchmarks() -> None:
    """List the benchmarks.

    Example: [bold]python -m spt benchmarks[/bold]
    """
    from spt.benchmarks import BENCHMARKS

    whole = [Column(title, no_wrap=True) for title in ("--benchmark", "Format", "From")]
    table = Table(*whole, "Licence", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name, benchmark in BENCHMARKS.items():
        source = benchmark.hub.id if benchmark.hub else benchmark.source.partition(" from ")[0]
        table.add_row(*map(escape, (name, benchmark.format.name, source, benchmark.licence)))
    out.print(table)
    out.print("Also: a .jsonl or .csv file of questions, and lm_eval:<task or .yaml>.", highlight=False)
    out.print("Those from the hub are also read from --data-dir. Option copy is closed.", highlight=False)


@app.command()
@_with_spec_options(only=("benchmark", "data_dir", "answer_format", "template", "pattern", "holdout_topic"))
def preview(
    rows: Annotated[int, typer.Option(min=1, max=100, help="how many rows to show")] = 5,
    **settings: Any,
) -> None:
    """Show a benchmark's rows as a model will see them, the target marked. Loads no model.

    Example: [bold]python -m spt preview --benchmark questions.jsonl[/bold]
    """
    from spt.console import show_preview
    from spt.preview import preview

    show_preview(out, preview(RunSpec.parse(**settings), rows))


@app.command()
@_with_spec_options()
def memory(
    json: Annotated[bool, typer.Option("--json", help="print the estimate as JSON, sizes in bytes")] = False,
    **settings: Any,
) -> None:
    """Estimate what a run will need and whether the device has it, from the model's config: no weights are loaded.

    Example: [bold]python -m spt memory --model Qwen/Qwen3-0.6B-Base --benchmark gsm8k --precision 4bit[/bold]
    """
    from spt.console import show_estimate
    from spt.memory import of_spec

    estimate = of_spec(RunSpec.parse(**settings))
    if json:
        sys.stdout.write(dumps(estimate.facts(), indent=1) + "\n")
    else:
        show_estimate(out, estimate)


@app.command()
def doctor() -> None:
    """Show what this machine has: device, memory, versions, hub reach, free disk.

    Example: [bold]python -m spt doctor[/bold]
    """
    from spt import doctor

    show_facts(out, doctor.report())
