"""Start the page and the worker beside it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import nullcontext

import gradio as gr
from starlette.middleware import Middleware

from spt.home import make_home
from spt.spec import UserError
from spt.store import Store
from spt.ui import app, theme, uploads
from spt.ui.access import Rules
from spt.ui.downloads import Downloads
from spt.ui.gate import Gate
from spt.worker import WorkerProcess


def serve(host: str, port: int, token: str = "", read_only: bool = False, kiosk: bool = False) -> None:
    """Serve until interrupted. The worker ends with the page; what it was running goes on at the next start.

    Only where `host` is reached from this machine alone, and no token says that others come, may the page be told paths
    here. A read-only page has no worker. `kiosk`: the page begins with the tour for a stand, as `/?kiosk` does on every
    server.
    Raises UserError if the port is none or taken, or SPT_HOME cannot be made.
    """
    rules = Rules(uploads.is_loopback(host) and not token, token, read_only)
    page, address = launch(rules, host, port, kiosk)
    print(f"spt is at {address} (Ctrl+C ends it)", flush=True)
    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    with nullcontext() if read_only else WorkerProcess():
        ended.wait()
    page.close(verbose=False)  # after the worker was told, so that it is not taken for one that died


def launch(rules: Rules, host: str, port: int, kiosk: bool = False) -> tuple[gr.Blocks, str]:
    """The page alone, served by a thread, and its address. Raises UserError as `serve` does."""
    if not 0 < port < 65536:
        raise UserError(f"Port {port} is not possible: choose one from 1 to 65535, PORT=7861.")
    make_home()
    # Gradio would reckon statistics of its last 10,000 events with each event of each page; nobody reads them here.
    os.environ.setdefault("GRADIO_ANALYTICS_CACHE_FREQUENCY", str(10**9))
    gr.set_static_paths([theme.plotly_js()])
    store = Store()
    page = app.build(store, rules).queue(default_concurrency_limit=None)
    try:
        _, address, _ = page.launch(
            server_name=host,
            server_port=port,
            theme=theme.theme(),
            css=theme.css(),
            head=theme.head(kiosk),
            footer_links=[],
            run_history=False,
            max_file_size="200mb",  # said in these words by Gradio; `uploads` checks it too
            favicon_path=theme.ASSETS / "favicon.svg",
            ssr_mode=False,
            show_error=True,
            quiet=True,
            prevent_thread_lock=True,
            app_kwargs={
                "middleware": [Middleware(Gate, rules=rules)],
                "routes": Downloads(store).routes(),  # before Gradio's own, which take every other address
            },
        )
    except OSError as error:
        raise UserError(
            f"Port {port} of {host} cannot be used, most likely it is taken: choose another, PORT=7861."
        ) from error
    return page, address
