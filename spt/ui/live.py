"""The run on the page: title, headline, stepper; the list of earlier runs; and what a visitor sees before the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spt.events import PHASES, Phase
from spt.presets import PRESETS
from spt.spec import RunSpec
from spt.ui.scores import headline
from spt.ui.text import count, duration, esc, marks, method_title, percent, short_model
from spt.view import RunView

STATUS = {
    "new": "Not started",
    "queued": "Waiting",
    "running": "Running",
    "stopped": "Stopped",
    "failed": "Failed",
    "interrupted": "Interrupted",
    "finished": "Finished",
}
LIVE = ("queued", "running")  # the page keeps polling
IDEA = "Does the score measure knowledge, or format?"
DOING: dict[Phase, str] = {
    "load": "Loading the model",
    "zero_shot": "Answering without examples",
    "few_shot": "Answering with examples",
    "tuning": "Tuning the soft prompt",
    "soft_prompt": "Answering with the soft prompt",
}


def model_title(model: str) -> str:
    """The preset's title, or the last part of a hub id or path."""
    return PRESETS[model].title if model in PRESETS else short_model(model)


def phase_title(phase: Phase, shots: int) -> str:
    if phase == "load":
        return "Load"
    return "Tuning" if phase == "tuning" else method_title(phase, shots)


def sentence(status: str, view: RunView, shots: int, position: int | None) -> str:
    """The one large line: what is happening, or what came out."""
    found = headline(view.scores, shots) if view.scores else ""
    if status == "queued":
        ahead = (position or 1) - 1
        return "Waiting for its turn: next." if ahead < 1 else f"Waiting for its turn: {count(ahead, 'run')} before it."
    if status == "failed":
        return view.message or "The run failed without saying why; the server's log has more."
    if status == "running":
        return found or (f"{DOING[view.phase]} …" if view.phase else "Starting …")
    if status in ("stopped", "interrupted"):
        why = "Stopped" if status == "stopped" else "Interrupted: the process that ran it is gone"
        where = f" at step {len(view.losses)} of {view.spec.steps}" if view.losses else ""
        return f"{why}{where}. Resume goes on from there, with the same result as an unbroken run."
    return found or "Not started yet."


def _small(phase: Phase, state: str, view: RunView) -> str:
    """The line under a step: how far it is, or how long it took."""
    if state == "now" and view.total:
        left = f" · {duration(view.seconds_left)} left" if view.seconds_left is not None else ""
        return f"{view.done} / {view.total}{left}"
    if state == "done" and phase in view.phase_seconds:
        return duration(view.phase_seconds[phase])
    return ""
