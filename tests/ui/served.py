"""The page served in this process, for tests without a browser. No worker: what is queued stays queued."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from spt.ui.access import Rules
from spt.ui.serve import launch


@contextmanager
def served(rules: Rules) -> Iterator[str]:
    """Its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    page, address = launch(rules, "127.0.0.1", port)
    try:
        yield address.replace("localhost", "127.0.0.1")
    finally:
        page.close(verbose=False)
