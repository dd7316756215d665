"""The run on the page: title, headline, stepper; the list of earlier runs; and what a visitor sees before the first."""

from __future__ import annotations

from collections.abc import Sequence

from spt.events import DataLoaded, Phase, last_method, phases_of
from spt.findings import percent
from spt.presets import model_title
from spt.spec import LORA, METHODS, RunSpec
from spt.store import Status
from spt.ui.charts import SATURATION
from spt.ui.listed import Listed
from spt.ui.scores import headline
from spt.ui.text import benchmark_title, colour, esc, marks, method_title
from spt.view import RunView, count, duration

STATUS: dict[Status, str] = {
    "new": "Not started",
    "queued": "Waiting",
    "running": "Running",
    "stopped": "Stopped",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "finished": "Finished",
}
LIVE: tuple[Status, ...] = ("queued", "running")  # the page polls often
IDEA = "Does the score measure knowledge, or format?"
DOING: dict[Phase, str] = {
    "load": "Loading the model",
    "zero_shot": "Answering without examples",
    "few_shot": "Answering with examples",
    "tuning": "Tuning the soft prompt",
    "soft_prompt": "Answering with the soft prompt",
    "controls": "Answering with further seeds and controls",
    "lora_tuning": "Tuning LoRA",
    "lora": "Answering with LoRA",
}


def phase_title(phase: Phase, shots: int) -> str:
    if phase == "load":
        return "Load"
    titles = {"tuning": "Tuning", "controls": "Controls", "lora_tuning": "LoRA tuning"}
    return titles.get(phase) or method_title(phase, shots)


def sentence(status: Status, view: RunView, position: int | None) -> str:
    """The one large line: what is happening, or what came out."""
    found = headline(view.scores) if view.scores else ""
    if status == "queued":
        return f"Waiting for the device: {count(position, 'run')} before this one." if position else "Starting …"
    if status == "failed":
        return view.message or "The run failed without saying why; the server's log has more."
    if status == "running":
        return found or (f"{DOING[view.phase]} …" if view.phase else "Starting …")
    if status in ("stopped", "interrupted"):
        why = "Stopped" if status == "stopped" else "Interrupted: the process that ran it is gone"
        where = f" at step {len(view.losses)} of {view.spec.steps}" if view.losses else ""
        return f"{why}{where}. Resume goes on from there, with the same result as an unbroken run."
    return found or "Not started yet."


def _complete(phase: Phase, view: RunView) -> bool:
    """Whether a phase is behind us; in a resumed run also those of earlier attempts."""
    if phase == "load":
        return view.model is not None and view.data is not None
    if phase == "tuning":
        return len(view.losses) >= view.spec.steps
    if phase == "lora_tuning":
        return len(view.lora_losses) >= view.spec.steps
    return last_method(phase) in view.scores


def _step(phase: Phase, status: Status, view: RunView) -> str:
    now = phase == view.phase and status not in ("finished", "queued")
    done = status == "finished" or (_complete(phase, view) and not now)
    state = "now" if now else "done" if done else "todo"
    share = 1.0 if done else view.phase_fraction if now else 0.0
    small = ""
    if now and view.phase_total:
        left = f" · {duration(view.phase_seconds_left)} left" if view.phase_seconds_left is not None else ""
        small = f"{view.phase_done} of {view.phase_total}{left}"
    elif now and view.phase_detail:
        small = esc(view.phase_detail)
    elif done and phase in view.phase_seconds:
        small = duration(view.phase_seconds[phase])
    # A step of unknown length (loading) moves to and fro instead of standing still.
    moving = " open" if now and not view.phase_total and status == "running" else ""
    return (
        f'<li class="{state}"{" aria-current=step" if now else ""}>'
        f'<span class="rail{moving}"><i style="width:{share * 100:.1f}%"></i></span>'
        f"<b>{esc(phase_title(phase, view.spec.shots))}</b><small>{small}</small></li>"
    )


def stepper(status: Status, view: RunView) -> str:
    """The steps from loading to the final answers; the current one fills and says how long it still takes."""
    return f'<ol class="stepper">{"".join(_step(phase, status, view) for phase in phases_of(view.spec))}</ol>'


def _how(spec: RunSpec) -> str:
    seeds = f"seeds {spec.seed}–{spec.seed + spec.seeds - 1}" if spec.seeds > 1 else f"seed {spec.seed}"
    controls = f", {count(len(spec.control), 'control')}" if spec.control else ""
    topic = f", tested on {esc(spec.holdout_topic)} alone" if spec.holdout_topic else ""
    lora = ", LoRA" if LORA in spec.method else ""
    return f"{seeds}{controls}{lora}, {count(spec.steps, 'step')} × {spec.batch_size}{topic}"


def run_html(run: str, status: Status, view: RunView, position: int | None) -> str:
    """Top of a run. `data-run` and `data-title` are read by `charts.js`: address bar and tab title follow them."""
    spec, words = view.spec, STATUS[status]
    benchmark = benchmark_title(spec.benchmark)
    title = f"{benchmark} · {model_title(spec.model)}"
    share = f"{view.phase_done * 100 // view.phase_total} % " if status == "running" and view.phase_total else ""
    failed = " failed" if status == "failed" else ""
    left = view.seconds_left if status == "running" else None
    about = f"<span>about {duration(left)} left</span>" if left is not None else ""
    if status == "running" and view.phase_total and view.phase_detail:
        about += f"<span>{esc(view.phase_detail)}</span>"
    return (
        f'<div data-run="{esc(run)}" data-title="{esc(f"{share}{words.lower()} · {benchmark} · spt")}">'
        f'<div class="run-head"><span class="pill {status}">{words}</span><b>{esc(title)}</b>'
        f"<span>{_how(spec)}</span>{about}</div>"
        f'<p class="headline{failed}" role="status">{esc(sentence(status, view, position))}</p>'
        f"{stepper(status, view)}</div>"
    )


def _saturation(steps: int) -> str:
    """What the upright lines of the charts mean, those that are in range."""
    seen = [f"{step} (<b>{kind}</b>-ended)" for kind, step in SATURATION if step <= steps]
    if not seen:
        return ""
    return (
        f" Upright lines: the authors saw such tasks saturate at step {' and '.join(seen)}, "
        '<a href="https://arxiv.org/abs/2606.12117">arXiv:2606.12117</a>.'
    )


def legend_html(spec: RunSpec, data: DataLoaded | None) -> str:
    """Title and key of the three panels; says how many items stand behind the lines."""
    probed = f"{len(data.probed)} of {count(data.items, 'test item')}" if data else "a few test items"
    return (
        '<h3>Format, knowledge and score, step by step</h3>'
        f'<p class="note">On {probed}; the soft prompt is scored again every {count(spec.probe_every, "step")}.'
        f"{_saturation(spec.steps)}</p>{keys_html(spec)}"
    )


def keys_html(spec: RunSpec) -> str:
    """Which line is which."""
    lines = [(colour(method), method_title(method, spec.shots)) for method in METHODS]
    if spec.seeds > 1:
        lines.append(("seed", count(spec.seeds - 1, "further seed")))
    lines += [(colour(control), f"control: {method_title(control).lower()}") for control in spec.control]
    keys = "".join(f'<span class="{tone}"><i></i>{esc(title)}</span>' for tone, title in lines)
    return f'<div class="legend">{keys}<span class="ci"><i></i>95 % interval</span></div>'


def broken_html(message: str) -> str:
    """For an address whose run is not here or cannot be read. The address stays: it may be right another time."""
    return (
        f'<div><p class="headline failed" role="alert">{esc(message)}</p>'
        '<p class="sub">Pick an earlier run from the list, or start a new one.</p></div>'
    )


def welcome_html(read_only: bool = False) -> str:
    """The idea for a visitor with one minute: one question, two answers, one of which scores."""
    next_step = "Pick a run from the list." if read_only else "Press Start: about three minutes on a laptop."
    answers = (
        ("zero", "Zero-shot", "The capital of Oman is Muscat.", False, "scores", "0"),
        ("soft", "With the tuned prompt", "#### Muscat", True, "scores", "1"),
    )
    columns = "".join(
        f'<div class="reply {colour}{" hit" if in_format else ""}"><h5>{title}</h5>'
        f'<p class="answer-text">{esc(text)}</p>'
        f'{marks(True, in_format)}<p class="verdict">{verb} <b>{score}</b></p></div>'
        for colour, title, text, in_format, verb, score in answers
    )
    return (
        f'<div class="welcome"><h1>{esc(IDEA)}</h1><ol>'
        "<li><span>A benchmark counts an answer only if it is right <b>and</b> written the way it wants. "
        "Models fail at the second and look as if they failed at the first.</span></li>"
        "<li><span>spt tunes <b>ten vectors</b> in front of the question, for 80 steps, with the model frozen: "
        "enough to learn the form, too little to learn facts.</span></li>"
        "<li><span>Then it compares zero-shot, few-shot and soft prompt, and shows <b>knowledge</b> apart from "
        f"<b>format</b>. {next_step}</span></li></ol>"
        '<article class="exhibit"><header>'
        '<div class="question"><p class="answer-text">What is the capital of Oman?</p></div>'
        '<div class="wanted"><span>Reference</span><p class="answer-text">#### Muscat</p></div></header>'
        f'<div class="replies">{columns}</div></article></div>'
    )


def header_html() -> str:
    return (
        f'<header class="top"><b><a href="?">spt</a></b><span>{esc(IDEA)}</span>'
        '<button type="button" class="quiet" data-theme aria-label="Light or dark">light / dark</button>'
        "</header>"
    )


def footer_html() -> str:
    return (
        '<div class="bottom"><span>Soft-prompt tuning for benchmark evaluation, after '
        '<a href="https://arxiv.org/abs/2606.12117">arXiv:2606.12117</a> and '
        '<a href="https://arxiv.org/abs/2104.08691">arXiv:2104.08691</a>.</span>'
        "<span>Runs go on when this page closes; its address brings you back.</span></div>"
    )


def runs_html(runs: Sequence[Listed], shown: str, first: int = 6) -> str:
    """The last runs, and the way to all of them. Plain links, so that a new tab works too."""
    if not runs:
        return ""

    def line(run: Listed) -> str:
        here = ' aria-current="true"' if run.id == shown else ""
        score = percent(run.exact_match) if run.exact_match is not None else ""
        title = esc(benchmark_title(run.spec.benchmark))
        return (
            f'<a href="?run={esc(run.id)}" data-open="{esc(run.id)}"{here}><b>{title}</b>'
            f'<span class="score">{score}</span><small>{esc(model_title(run.spec.model))}</small>'
            f"<small>{STATUS[run.status].lower() if not run.problem else 'unreadable'}</small></a>"
        )

    more = f"All {count(len(runs), 'run')}" if len(runs) > first else "Table of runs"
    head = '<h3>Runs <span class="note" title="with the soft prompt">exact match</span></h3>'
    every = f'<a class="every" href="?tab=runs" data-tab="runs">{more}</a>'
    return f'<nav class="runs" aria-label="Runs">{head}{"".join(map(line, runs[:first]))}{every}</nav>'
