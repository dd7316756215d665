"""Gradio's Blocks, with updates that change nothing at no cost.

An event of this page may change any of some forty parts and mostly changes a few. Gradio makes every output anew, also
those that are skipped: 20 ms of processor time for each tick of each open page (`perf/RESULTS.md`), taken from the run.
"""

from __future__ import annotations

import copy
from typing import Any

import gradio as gr

_SKIP = gr.skip()


class LightBlocks(gr.Blocks):
    """A page whose skipped outputs are left alone."""

    async def postprocess_data(self, block_fn: Any, predictions: Any, state: Any) -> list[Any]:
        """What is sent to the browser: of skipped outputs nothing, of the others what Gradio makes of them."""
        outputs = block_fn.outputs
        if block_fn.batch or len(outputs) < 2 or not isinstance(predictions, list) or len(predictions) != len(outputs):
            return await super().postprocess_data(block_fn, predictions, state)
        kept = [index for index, prediction in enumerate(predictions) if prediction != _SKIP]
        sent: list[Any] = [None if part.stateful else gr.skip() for part in outputs]
        if kept:
            narrow = copy.copy(block_fn)
            narrow.outputs = [outputs[index] for index in kept]
            values = [predictions[index] for index in kept]
            made = await super().postprocess_data(narrow, values if len(kept) > 1 else values[0], state)
            for index, value in zip(kept, made, strict=True):
                sent[index] = value
        return sent
