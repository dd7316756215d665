"""Skipped outputs cost nothing, and what is sent is what Gradio itself would send."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import gradio as gr
import pytest
from gradio.state_holder import SessionState

from spt.ui.blocks import LightBlocks

SKIP = gr.skip()


def sent(kind: type[gr.Blocks], outputs: int, values: Any) -> tuple[list[Any], list[str]]:
    """What goes to the browser, and which parts the session holds anew."""
    with kind() as blocks:
        parts = [gr.HTML("a"), gr.Textbox("b"), gr.Radio(["x", "y"]), gr.State(0)][:outputs]
        blocks.load(lambda: None, None, parts)
    state = SessionState(blocks)
    before = dict(state.blocks_config.blocks)
    data = asyncio.run(blocks.postprocess_data(blocks.fns[0], copy.deepcopy(values), state))
    for each in data:  # Gradio's own note on a part of HTML that is skipped, which says nothing
        if isinstance(each, dict) and each.get("props") == SKIP:
            del each["props"]
    made = [type(part).__name__ for key, part in state.blocks_config.blocks.items() if before.get(key) is not part]
    return data, made


@pytest.mark.parametrize(
    ("outputs", "values"),
    [
        (4, [SKIP, SKIP, SKIP, SKIP]),
        (4, [gr.update(value="<b>", visible=False), SKIP, SKIP, 3]),
        (4, [SKIP, "plain", gr.update(choices=["z"], value="z"), SKIP]),
        (4, ["c", "d", "x", 1]),
        (4, SKIP),
        (2, [SKIP, gr.update(interactive=False)]),
        (2, [SKIP, None]),
        (1, gr.update(value="e")),
        (1, SKIP),
    ],
)
def test_the_browser_is_sent_the_same(outputs: int, values: Any) -> None:
    assert sent(LightBlocks, outputs, values)[0] == sent(gr.Blocks, outputs, values)[0]


def test_skipped_parts_are_not_made_anew() -> None:
    values = [gr.update(value="<b>"), SKIP, SKIP, SKIP]
    assert sent(LightBlocks, 4, values)[1] == ["HTML"]
    assert sent(gr.Blocks, 4, values)[1] == ["HTML", "Textbox", "Radio"], "else this class has become needless"
