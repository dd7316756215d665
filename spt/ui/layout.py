"""The parts of a run on the page, from its title down to the answers, in the order in which they stand."""

from __future__ import annotations

from typing import Any

import gradio as gr

from spt.ui import answers, judging, watch

CHART = '<div class="plot"></div>'
SAVE = (
    '<p class="save"><button type="button" data-picture="png" aria-label="Save the chart as PNG">PNG</button> · '
    '<button type="button" data-picture="svg" aria-label="Save the chart as SVG">SVG</button></p>'
)
SAVE_JS = "window.spt.pictures(element)"
CHART_JS = "window.spt.chart(element, props, watch)"


def run_column(parts: dict[str, Any], local: bool) -> None:
    """Everything of a run, by name into `parts`."""
    parts["run"] = gr.HTML(js_on_load="window.spt.follow(element, watch)")
    with gr.Row(elem_id="actions"):
        parts["exports"] = gr.HTML(visible=False, elem_id="exports")
        parts["stop"] = gr.Button("Stop", visible=False, elem_id="stop")
        parts["resume"] = gr.Button("Resume", variant="primary", visible=False, elem_id="resume")
        parts["again"] = gr.Button("Run again", visible=False, elem_id="again")
    parts["notice"] = gr.HTML(visible=False, elem_id="notice")
    with gr.Column(visible=False, elem_id="body") as parts["body"]:
        parts["scores"] = gr.HTML(visible=False)
        parts["findings"] = gr.HTML(visible=False)
        parts["cells"] = gr.HTML(visible=False, elem_id="cells")
        with gr.Column(visible=False, elem_id="charts") as parts["charts"]:
            with gr.Column(elem_classes="card") as parts["probe-card"]:
                parts["legend"] = gr.HTML()
                parts["probe"] = gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id="probe-chart")
                gr.HTML(SAVE, js_on_load=SAVE_JS)
            with gr.Column(visible=False, elem_id="watch", elem_classes="card") as parts["watch"]:
                _watch(parts)
            with gr.Column(elem_classes="card"):
                gr.HTML("<h3>Training loss</h3>")
                parts["loss"] = gr.HTML({}, html_template=CHART, js_on_load=CHART_JS, elem_id="loss-chart")
                gr.HTML(SAVE, js_on_load=SAVE_JS)
        parts["letters"] = gr.HTML(visible=False)
        parts["facts"] = gr.HTML()
        with gr.Column(visible=False, elem_id="judge") as parts["judge"]:
            _judge(parts, local)
        with gr.Column(visible=False, elem_id="compare") as parts["compare"]:
            _compare(parts)


def _watch(parts: dict[str, Any]) -> None:
    """Beneath the curves: the line of the playback runs through them."""
    gr.HTML(
        "<h3>Watch answers change</h3>"
        f'<p class="note">The followed questions, up to {watch.MOST} at a time, as they were answered at each step.</p>'
    )
    parts["questions"] = gr.Dropdown(
        [],
        label="Questions",
        show_label=False,
        multiselect=True,
        max_choices=watch.MOST,
        elem_id="question-pick",
        interactive=True,
        container=False,
    )
    parts["playback"] = gr.HTML(
        {},
        html_template='<div class="playback"></div>',
        js_on_load="window.spt.playback(element, props, watch)",
        elem_id="playback",
    )


def _judge(parts: dict[str, Any], local: bool) -> None:
    """Who is asked to judge. The key is the environment's: a page is no place for one."""
    model, url = judging.defaults()
    with gr.Accordion("Have a judge read the answers", open=False, elem_id="judge-form", elem_classes="group"):
        gr.HTML(judging.note(local))
        with gr.Row():
            parts["judge-model"] = gr.Textbox(
                model, label="Model", placeholder="Qwen/Qwen3-32B", interactive=local, elem_id="judge-model"
            )
            parts["judge-url"] = gr.Textbox(
                url, label="Endpoint", placeholder="http://localhost:8000/v1", interactive=local, elem_id="judge-url"
            )
        parts["judge-start"] = gr.Button("Judge the answers", elem_id="judge-start", interactive=local or bool(model))


def _compare(parts: dict[str, Any]) -> None:
    gr.HTML('<div class="section"><h3>Answers side by side</h3></div>')
    with gr.Row(elem_id="choose"):
        parts["filter"] = gr.Radio(
            [(f.label, name) for name, f in answers.FILTERS.items()],
            value="all",
            label="Show",
            show_label=False,
            container=False,
            elem_id="filters",
            interactive=True,
        )
        parts["search"] = gr.Textbox(
            label="Search questions and answers",
            show_label=False,
            placeholder="Search",
            container=False,
            elem_id="search",
            interactive=True,
        )
        parts["controls"] = gr.Checkbox(
            label="Show controls", value=False, visible=False, container=False, elem_id="controls", interactive=True
        )
    parts["answers"] = gr.HTML(elem_id="answers")
    with gr.Row(visible=False, elem_id="pager") as parts["pager"]:
        parts["previous"] = gr.Button("← Previous", elem_id="previous")
        parts["where"] = gr.HTML()
        parts["next"] = gr.Button("Next →", elem_id="next")
