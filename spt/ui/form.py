"""The form: one input for every field of RunSpec, with its default, description and range read from there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import gradio as gr
from annotated_types import Ge, Gt, Le, Lt

from spt.benchmarks import BUNDLED, HUB, canonical, default_data_dir, is_own_file
from spt.presets import PRESETS, terms_accepted
from spt.spec import BadSetting, ChatTemplate, Precision, RunSpec, UserError
from spt.ui import uploads
from spt.ui.text import benchmark_title, esc

MAIN = ("model", "benchmark", "precision")
EVIDENCE = ("seeds", "control", "method", "holdout_topic")
DATA = ("data_dir", "answer_format", "template", "pattern")
OWN = ("answer_format", "template", "pattern")  # of a file of the user's
LABELS = {
    "model": "Model",
    "benchmark": "Benchmark",
    "precision": "Precision",
    "revision": "Revision of the model",
    "chat_template": "Chat template",
    "shots": "Examples (few-shot)",
    "virtual_tokens": "Virtual tokens",
    "steps": "Steps",
    "batch_size": "Batch size",
    "learning_rate": "Learning rate",
    "seed": "Seed",
    "items": "Test items",
    "probe_every": "Probe every … steps",
    "probe_items": "Probe items",
    "seeds": "Seeds",
    "control": "Controls",
    "method": "Further method",
    "holdout_topic": "Topic held out",
    "data_dir": "Folder of data sets",
    "answer_format": "Answer format",
    "template": "Template of the target",
    "pattern": "Pattern of an answer",
}
# Where the command line's words would puzzle here.
INFO = {
    "seeds": "Soft prompts tuned together",
    "control": "Further prompts, tuned on wrong answers in the right form: their format should rise too",
    "method": "Weights of the model are adapted on the same rows, to compare with. Takes longer than tuning the prompt",
    "holdout_topic": "Tune on all other topics, test on this one. The preview lists them",
    "data_dir": "<hub id>/<config>/<split>.jsonl or .parquet in place of the hub",
    "answer_format": "For a file of your own",
    "template": "For a file of your own: the target, with {answer} in it",
    "pattern": "Regular expression of an answer; its group 1 is the answer",
}
PRECISIONS = {"auto": "auto", "fp32": "fp32", "bf16": "bf16", "4bit": "4-bit"}
CONTROLS = [("Shuffled answers", "shuffled"), ("Any valid answer", "valid-format")]
FURTHER = [("LoRA", "lora")]
FORMATS = [
    ("By the file: options copied, else a phrase", ""),
    ("Copy of an option", "option-copy"),
    ("#### answer", "hash"),
    ("Short phrase", "phrase"),
    ("\\boxed{answer}", "boxed"),
    ("Template and pattern", "pattern"),
]
FIELDS: tuple[str, ...] = (*MAIN, *(name for name in RunSpec.model_fields if name not in MAIN))
TUNING = tuple(name for name in FIELDS if name not in (*MAIN, *EVIDENCE, *DATA))


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


def benchmarks(chosen: str = "") -> list[tuple[str, str]]:
    """The benchmarks to choose from: those that come with spt, those of the hub, and the file that is chosen now."""
    own = [(f"Your file · {benchmark_title(chosen)}", chosen)] if is_own_file(chosen) else []
    bundled = [(each.title, each.name) for each in BUNDLED.values()]
    return [*own, *bundled, *((f"Hub · {each.title}", each.name) for each in HUB.values())]


def _input(name: str, local: bool) -> Any:
    """The input of one field. Numbers carry no limits of their own: RunSpec judges them, and says so in a sentence."""
    field = RunSpec.model_fields[name]
    text = INFO.get(name) or field.description or ""
    info = text[:1].upper() + text[1:] + (f" ({allowed(name)})" if allowed(name) else "")
    common: dict[str, Any] = {
        "label": LABELS[name], "value": field.default, "elem_id": f"field-{name}", "interactive": True
    }  # fmt: skip
    if name == "model":
        models = [(f"{p.title} · base" if p.kind == "base" else p.title, p.name) for p in PRESETS.values()]
        typed = "Or type a hub id or a local folder" if local else "Or type a hub id"
        return gr.Dropdown(models, allow_custom_value=True, info=typed, **common)
    if name == "benchmark":
        typed = "Or type lm_eval:task, or the path of a .jsonl or .csv file"
        if not local:
            typed = "Or type lm_eval:task, or upload a file; paths of this server are not read"
        return gr.Dropdown(benchmarks(), allow_custom_value=True, info=typed, **common)
    if name == "precision":
        return gr.Dropdown([(PRECISIONS[p], p) for p in get_args(Precision)], info=info, **common)
    if name == "chat_template":
        return gr.Dropdown(list(get_args(ChatTemplate)), info=info, **common)
    if name == "answer_format":
        return gr.Dropdown(FORMATS, info=info, **{**common, "value": ""})
    if name in ("control", "method"):
        several = CONTROLS if name == "control" else FURTHER
        return gr.CheckboxGroup(several, info=info, **{**common, "value": []})
    if field.default is None:
        hints = {"revision": "latest", "template": "<a>{answer}</a>", "pattern": "<a>(.+?)</a>"}
        fixed = name == "data_dir" and not local
        return gr.Textbox(info=info, placeholder=hints.get(name), **{**common, "value": "", "interactive": not fixed})
    return gr.Number(info=info, step=0.01 if name == "learning_rate" else 1, **common)


@dataclass(frozen=True)
class Form:
    """The components; `inputs` in the order of FIELDS."""

    inputs: list[Any]
    upload: gr.UploadButton
    preview: gr.Button
    need: Any  # gr.HTML, to which Gradio adds the event `fit`
    terms_text: gr.HTML
    terms: gr.Checkbox
    problem: gr.HTML
    start: gr.Button
    command: gr.HTML

    def named(self, *names: str) -> list[Any]:
        return [self.inputs[FIELDS.index(name)] for name in names]


def build(copy_js: str, fit_js: str, local: bool = True) -> Form:
    """Lay out the form inside the current column. `local`: the page is reached from this machine alone."""
    made = {name: _input(name, local) for name in MAIN[:2]}
    with gr.Row(elem_id="own"):
        upload = gr.UploadButton(
            "Upload your own file", file_types=list(uploads.SUFFIXES), size="sm", elem_id="upload"
        )
        preview = gr.Button("See five rows", size="sm", elem_id="see")
    made["precision"] = _input("precision", local)
    need = gr.HTML(visible=False, elem_id="need", js_on_load=fit_js)
    groups = (("Tuning", TUNING, "advanced"), ("Evidence", EVIDENCE, "evidence"), ("Data", DATA, "data"))
    for title, names, element in groups:
        with gr.Accordion(title, open=False, elem_id=element, elem_classes="group"):
            made |= {name: _input(name, local) for name in names}
    terms_text = gr.HTML(visible=False)
    terms = gr.Checkbox(label="I have read the terms and accept them", value=False, visible=False, elem_id="terms")
    problem = gr.HTML(visible=False, elem_id="problem")
    start = gr.Button("Start", variant="primary", elem_id="start")
    command = gr.HTML(command_html(RunSpec.parse(), local), js_on_load=copy_js, elem_id="command")
    return Form([made[name] for name in FIELDS], upload, preview, need, terms_text, terms, problem, start, command)


def to_spec(values: tuple[Any, ...], local: bool = True) -> RunSpec:
    """The spec that the form says. Raises UserError with one sentence."""
    settings = dict(zip(FIELDS, values, strict=True))
    for name, value in settings.items():
        if isinstance(value, str):
            settings[name] = value.strip()
        if settings[name] in (None, "") and RunSpec.model_fields[name].default is None:
            settings[name] = None
        elif value is None:
            raise UserError(f"{LABELS[name]} is empty: fill it in, {allowed(name) or 'or pick one'}.")
    settings["data_dir"] = settings["data_dir"] or default_data_dir()
    if not local:
        uploads.no_paths(settings)
    try:
        return canonical(RunSpec.parse(**settings))
    except BadSetting as error:
        raise error.named(LABELS[error.name]) from None


def from_spec(spec: RunSpec) -> list[Any]:
    """What the inputs show for a spec."""
    values = [getattr(spec, name) for name in FIELDS]
    return ["" if value is None else list(value) if isinstance(value, tuple) else value for value in values]


def updates(values: list[Any]) -> list[Any]:
    """`values` for the components: a file of the user's stands in the list of benchmarks by its own name."""
    at = FIELDS.index("benchmark")
    chosen = gr.update(choices=benchmarks(values[at]), value=values[at])
    return [*values[:at], chosen, *values[at + 1 :]]


def edits(inputs: Iterable[Any]) -> list[Any]:
    """The events of a person's edits. A textbox's `input` does not hear of text that is pasted, so leaving it counts
    too; its `change` would also fire where the page itself fills the form, with the other values of before."""
    events = []
    for each in inputs:
        events += [each.input, each.blur, each.submit] if isinstance(each, gr.Textbox) else [each.input]
    return events


def uploaded(path: Path) -> Any:
    """The benchmark input with this file chosen."""
    return gr.update(choices=benchmarks(str(path)), value=str(path))


def problem_html(message: str) -> str:
    return f'<div class="problem" role="alert"><b>Not possible.</b> {esc(message)}</div>'


def command_html(spec: RunSpec, local: bool = True) -> str:
    """The command line that does the same as the form. Seen from elsewhere, without the folders of this server."""
    if not local:
        folder = Path(spec.data_dir).name if spec.data_dir else None
        spec = spec.model_copy(update={"benchmark": benchmark_title(spec.benchmark), "data_dir": folder})
    words = re.sub(r"(?<= )(--[a-z-]+)", r"<span>\1</span>", esc(spec.command()))  # no line ends within an option
    return (
        '<div class="command">The same on the command line'
        f'<div class="box"><code>{words}</code>'
        '<button type="button" class="quiet" data-copy>copy</button></div></div>'
    )


def terms_html(model: str) -> str:
    """The terms that stand between this model and its first use; empty if there are none (any more)."""
    if terms_accepted(model):
        return ""
    return f'<p class="terms">{esc(PRESETS[model].terms)}</p>'
