"""Start the page and the worker beside it."""

from __future__ import annotations

import gradio as gr

from spt.store import Store
from spt.ui import app, theme
from spt.worker import WorkerProcess


def serve(host: str, port: int) -> None:
    """Serve until interrupted. The worker ends with the page; what it was running goes on at the next start."""
    gr.set_static_paths([theme.plotly_js()])
    with WorkerProcess():
        app.build(Store()).queue(default_concurrency_limit=None).launch(
            server_name=host,
            server_port=port,
            theme=theme.theme(),
            css=theme.css(),
            head=theme.head(),
            footer_links=[],
            run_history=False,
            favicon_path=theme.ASSETS / "favicon.svg",
            ssr_mode=False,
            show_error=True,
            quiet=True,
        )
