"""Serve the page: `python app.py`, then open http://127.0.0.1:7860. PORT or --port changes the port."""

from __future__ import annotations

import argparse
import os
import sys

# Nothing leaves this machine: set before Gradio is imported, which reads it at once.
os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")


def main() -> None:
    parser = argparse.ArgumentParser(prog="app.py", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; 0.0.0.0 = every network")
    parser.add_argument("--port", type=int, default=os.environ.get("PORT", "7860"), help="the default is PORT, or 7860")
    parser.add_argument("--kiosk", action="store_true", help="open with the tour of finished runs, for a stand")
    parser.add_argument(
        "--operator-token",
        default=os.environ.get("SPT_OPERATOR_TOKEN", ""),
        metavar="TOKEN",
        help="/?token=TOKEN may change every run, other visitors their own; better set as SPT_OPERATOR_TOKEN",
    )
    parser.add_argument("--read-only", action="store_true", help="show the runs that there are, and start none")
    options = parser.parse_args()

    from spt.spec import UserError
    from spt.ui.serve import serve

    try:
        serve(options.host, options.port, options.operator_token, options.read_only, options.kiosk)
    except UserError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
