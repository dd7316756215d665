"""The tabs and the address: `?tab=runs` opens one, as `?compare=` does, and opening one writes it there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gradio as gr

from spt.ui.page import LIGHT


def wire(blocks: gr.Blocks, strip: gr.Tabs, by_name: Mapping[str, gr.Tab], openers: Sequence[Any]) -> None:
    """Keep tabs and address in step, by the ids of the tabs; a run that is picked anywhere is shown in its own tab."""

    def named(request: gr.Request) -> object:
        name = str(request.query_params.get("tab", "compare" if "compare" in request.query_params else ""))
        return gr.Tabs(selected=name) if name in by_name else gr.skip()

    blocks.load(named, None, strip, **LIGHT)
    for name, tab in by_name.items():
        tab.select(None, js=f"() => window.spt.tab('{name}')")
    for opener in openers:
        opener.pick(lambda: gr.Tabs(selected="run"), None, strip, **LIGHT)
