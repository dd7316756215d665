"""What a run will need of the device's memory: a quiet line in the form, reckoned from the model's config alone.

It follows the form without holding it up: an answer that is known stands there at once, another is reckoned in a
process of its own (`spt.memory.ask`) once the form has been still for a moment, one at a time for all visitors.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr
import psutil
from anyio import to_thread

from spt import memory
from spt.memory import Estimate, gigabytes
from spt.spec import RunSpec, UserError
from spt.ui import access, form
from spt.ui.page import Session
from spt.ui.text import esc

STILL = 0.6  # seconds without an edit
PATIENCE = 180.0  # seconds; a busy machine takes long to import torch
RECKONING = '<p class="need">Memory: …</p>'
# What one click changes where a run does not fit: the value, and how it is called.
FIXES: dict[str, tuple[Any, str]] = {
    "precision": ("4bit", "4-bit"),
    "batch_size": (1, "Batch size 1"),
    "shots": (1, "1 example"),
}
CLICK_JS = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-fix]');
  if (button) trigger('fit', { name: button.dataset.fix });
})
"""


def room(estimate: Estimate) -> int:
    """Bytes a run will find: what spt holds itself for its last model is freed before the next one is loaded.

    Of a GPU's memory this process cannot tell whose it is, and takes it for spt's.
    """
    if estimate.cuda:
        return estimate.capacity
    held = 0
    for child in psutil.Process().children(recursive=True):
        try:
            held += child.memory_info().rss
        except psutil.Error:  # ended meanwhile
            continue
    return min(estimate.capacity, estimate.free + held)


def line(estimate: Estimate, free: int) -> str:
    """The line; where it does not fit, with buttons for what would."""
    need, has = gigabytes(estimate.total), gigabytes(estimate.capacity)
    device = f"the {estimate.device.split()[0]}" if estimate.cuda else "this machine"
    have = f"{device} has {has}" if estimate.cuda else f"{gigabytes(free)} of {has} are free on {device}"
    verdict = memory.verdict(estimate.total, free)
    if verdict == "fits":
        return f'<p class="need">Needs about <b>{esc(need)}</b> of memory; {esc(have)}.</p>'
    word = "Tight" if verdict == "tight" else "Does not fit"
    offered = ""
    for suggestion in estimate.suggestions:
        fits = suggestion.total is not None and memory.verdict(suggestion.total, free) != "does not fit"
        for name, (value, title) in FIXES.items():
            if fits and suggestion.total and suggestion.change == {name: value}:
                offered += (
                    f'<button type="button" class="quiet" data-fix="{name}">'
                    f"{title} · about {esc(gigabytes(suggestion.total))}</button>"
                )
    if not offered and verdict == "does not fit":
        offered = "<span>Choose a smaller model.</span>"
    buttons = f'<div class="fixes">{offered}</div>' if offered else ""
    return f'<p class="need short" role="status"><b>{word}:</b> needs about {esc(need)}; {esc(have)}.</p>{buttons}'


def fix(event: gr.EventData) -> list[Any]:
    """The fields of FIXES with the one change that was clicked."""
    name = str(getattr(event, "name", ""))
    return [value if each == name else gr.skip() for each, (value, _) in FIXES.items()]


def wire(blocks: gr.Blocks, session: gr.State, fields: form.Form, local: bool, **light: Any) -> None:
    """Let the line follow the form: its command changes with every setting, whoever set it."""
    reckoning = asyncio.Lock()

    async def follow(session: Session, request: gr.Request, *values: Any) -> AsyncIterator[Any]:
        try:
            access.check_open(request)
            spec = form.to_spec(values, local)
            asked = memory.key(spec)
        except UserError:  # the form says it
            asked = ""
        if asked in ("", session.need):
            yield gr.skip()
            return
        session.need = asked
        html = await to_thread.run_sync(known, spec)
        if html is None:
            yield gr.update(value=RECKONING, visible=True)
            await asyncio.sleep(STILL)
            async with reckoning:
                html = await to_thread.run_sync(reckon, spec) if session.need == asked else None
        yield gr.skip() if session.need != asked else gr.update(value=html, visible=True)

    inputs = [session, *fields.inputs]
    settings = {**light, "trigger_mode": "multiple"}
    fields.command.change(follow, inputs, fields.need, **settings)
    blocks.load(follow, inputs, fields.need, **settings)


def known(spec: RunSpec) -> str | None:
    """The line where it was reckoned before."""
    found = memory.kept(spec)
    return None if found is None else line(found, room(found))


def reckon(spec: RunSpec) -> str:
    """The line, or why there is none. Takes seconds."""
    try:
        found = memory.ask(spec, PATIENCE)
    except UserError as error:
        return f'<p class="need">{esc(error)}</p>'
    return line(found, room(found))
