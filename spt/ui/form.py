"""The form: one input for every field of RunSpec, with its default, description and range read from there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import gradio as gr
from annotated_types import Ge, Gt, Le, Lt

from spt.benchmarks import BENCHMARKS, canonical, default_data_dir
from spt.presets import PRESETS, terms_accepted
from spt.spec import ChatTemplate, Control, Precision, RunSpec, UserError
from spt.ui.text import esc

MAIN = ("model", "benchmark", "precision")
LABELS = {
    "virtual_tokens": "Virtual tokens",
    "learning_rate": "Learning rate",
    "batch_size": "Batch size",
    "chat_template": "Chat template",
    "probe_every": "Probe every … steps",
    "probe_items": "Probe items",
    "items": "Test items",
}
PRECISIONS = {"auto": "auto", "fp32": "fp32", "bf16": "bf16", "4bit": "4-bit"}
FIELDS: tuple[str, ...] = (*MAIN, *(name for name in RunSpec.model_fields if name not in MAIN))


def allowed(name: str) -> str:
    """The range of a number as the spec has it: `1 to 10,000`, `above 0, up to 10`; empty for other fields."""
    low, high = "", ""
    for rule in RunSpec.model_fields[name].metadata:
        if isinstance(rule, Ge):
            low = f"{rule.ge:,}"
        elif isinstance(rule, Gt):
            low = f"above {rule.gt:,}"
        elif isinstance(rule, Le):
            high = f"{rule.le:,}"
        elif isinstance(rule, Lt):
            high = f"below {rule.lt:,}"
    if low.startswith("above"):
        return f"{low}, up to {high}"
    return f"{low} to {high}" if low and high else ""


def _input(name: str) -> Any:
    """The input of one field. Numbers carry no limits of their own: RunSpec judges them, and says so in a sentence."""
    field = RunSpec.model_fields[name]
    label = LABELS.get(name, name.replace("_", " ").capitalize())
    text = field.description or ""
    info = text[:1].upper() + text[1:] + (f" ({allowed(name)})" if allowed(name) else "")
    common: dict[str, Any] = {"label": label, "value": field.default, "elem_id": f"field-{name}", "interactive": True}
    if name == "model":
        models = [(f"{p.title} · base" if p.kind == "base" else p.title, p.name) for p in PRESETS.values()]
        return gr.Dropdown(models, allow_custom_value=True, info="Or type a hub id or a local folder", **common)
    if name == "benchmark":
        kinds = [(benchmark.title, benchmark.name) for benchmark in BENCHMARKS.values()]
        return gr.Dropdown(kinds, **common)
    if name == "precision":
        return gr.Dropdown([(PRECISIONS[p], p) for p in get_args(Precision)], info=info, **common)
    if name == "chat_template":
        return gr.Dropdown(list(get_args(ChatTemplate)), info=info, **common)
    if name == "control":
        return gr.CheckboxGroup(list(get_args(Control)), info=info, **{**common, "value": []})
    if field.default is None:
        return gr.Textbox(info=info, placeholder="latest" if name == "revision" else None, **{**common, "value": ""})
    return gr.Number(info=info, step=0.01 if name == "learning_rate" else 1, **common)


@dataclass(frozen=True)
class Form:
    """The components, in the order of FIELDS."""

    inputs: list[Any]
    terms_text: gr.HTML
    terms: gr.Checkbox
    problem: gr.HTML
    start: gr.Button
    command: gr.HTML


def build(copy_js: str) -> Form:
    """Lay out the form inside the current column."""
    made = {name: _input(name) for name in MAIN}
    with gr.Accordion("Advanced", open=False, elem_id="advanced"):
        made |= {name: _input(name) for name in FIELDS if name not in MAIN}
    terms_text = gr.HTML(visible=False)
    terms = gr.Checkbox(label="I have read the terms and accept them", value=False, visible=False, elem_id="terms")
    problem = gr.HTML(visible=False, elem_id="problem")
    start = gr.Button("Start", variant="primary", elem_id="start")
    command = gr.HTML(command_html(RunSpec.parse()), js_on_load=copy_js, elem_id="command")
    return Form([made[name] for name in FIELDS], terms_text, terms, problem, start, command)


def to_spec(values: tuple[Any, ...]) -> RunSpec:
    """The spec that the form says. Raises UserError with one sentence."""
    settings = dict(zip(FIELDS, values, strict=True))
    for name, value in settings.items():
        if isinstance(value, str):
            settings[name] = value.strip()
        if value in (None, "") and RunSpec.model_fields[name].default is None:
            settings[name] = None
        elif value is None:
            raise UserError(
                f"{LABELS.get(name, name.capitalize())} is empty: fill it in, {allowed(name) or 'or pick one'}."
            )
    settings["data_dir"] = settings["data_dir"] or default_data_dir()
    return canonical(RunSpec.parse(**settings))


def from_spec(spec: RunSpec) -> list[Any]:
    """What the inputs show for a spec."""
    values = [getattr(spec, name) for name in FIELDS]
    return ["" if value is None else list(value) if isinstance(value, tuple) else value for value in values]


def problem_html(message: str) -> str:
    return f'<div class="problem" role="alert"><b>Not possible.</b> {esc(message)}</div>'


def command_html(spec: RunSpec) -> str:
    """The command line that does the same as the form."""
    return (
        '<div class="command">The same on the command line'
        f'<div class="box"><code>{esc(spec.command())}</code>'
        '<button type="button" class="quiet" data-copy>copy</button></div></div>'
    )


def terms_html(model: str) -> str:
    """The terms that stand between this model and its first use; empty if there are none (any more)."""
    if terms_accepted(model):
        return ""
    return f'<p class="terms">{esc(PRESETS[model].terms)}</p>'
