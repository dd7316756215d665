"""Files of finished runs, made when they are asked for: report, ZIP, result and answers. Routes of the web server.

    /report/<run>.html   /export/<run>.zip   /result/<run>.json   /answers/<run>/<method>.jsonl

Where there is nothing to give, one sentence stands on a page of its own: 404 for a run that is not there, 409 for one
that is not finished.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from spt.export import zip_run
from spt.files import replacing
from spt.report import html_report
from spt.spec import UserError
from spt.store import RunFolder, Store
from spt.ui.plain import plain_page

KEPT = 8  # files that stay until the server ends, the last used ones
BLOCK = 1 << 16
# The report brings all it shows; whatever a model wrote into it, nothing else is loaded or run.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


class Downloads:
    """What the routes give, for the runs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = tempfile.TemporaryDirectory(prefix="spt-")
        self._made: OrderedDict[str, Path] = OrderedDict()
        # One file at a time: two who ask for the same share it, and many who ask do not take the machine.
        self._lock = threading.Lock()

    def routes(self) -> list[Route]:
        return [
            Route("/report/{run:path}.html", self._answer(self._report)),
            Route("/export/{run:path}.zip", self._answer(self._zip)),
            Route("/result/{run:path}.json", self._answer(self._result)),
            Route("/answers/{run:path}/{method}.jsonl", self._answer(self._answers)),
        ]

    def _answer(self, give: Callable[[RunFolder, Request], Response]) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:
            back = "../" * (request.url.path.count("/") - 1)
            try:
                folder = self._store.get(request.path_params["run"])
            except UserError as error:
                return plain_page(404, str(error), back)
            try:
                if not folder.finished():
                    raise UserError(f"Run {folder.id} is not finished, so there is nothing to give yet.")
                response = give(folder, request)
            except UserError as error:
                return plain_page(409, str(error), back)
            except HTTPException as error:
                return plain_page(error.status_code, error.detail, back)
            response.headers["cache-control"] = "no-cache"  # a run can be made anew, or judged
            response.headers["x-content-type-options"] = "nosniff"
            return response

        return respond

    def _report(self, folder: RunFolder, request: Request) -> Response:
        def make(path: Path) -> None:
            text = html_report(folder)
            with replacing(path) as file:
                file.write(text.encode())

        response = self._file(folder, ".html", make, "text/html; charset=utf-8")
        response.headers["content-security-policy"] = REPORT_POLICY
        return response

    def _zip(self, folder: RunFolder, request: Request) -> Response:
        return self._file(folder, ".zip", lambda path: zip_run(folder, path), "application/zip")

    def _result(self, folder: RunFolder, request: Request) -> Response:
        result = folder.result()
        if result is None:
            raise UserError(f"Run {folder.id} is being made anew at this moment; ask again when it is finished.")
        return Response(result.model_dump_json(by_alias=True, indent=1), media_type="application/json")

    def _answers(self, folder: RunFolder, request: Request) -> Response:
        method = request.path_params["method"]
        if method not in folder.spec.methods:
            raise HTTPException(404, f"Run {folder.id} has no method {method[:40]!r}.")
        rows = folder.predictions(method)
        return StreamingResponse((f"{row.model_dump_json()}\n" for row in rows), media_type="application/jsonl")

    def _file(self, folder: RunFolder, suffix: str, make: Callable[[Path], None], kind: str) -> Response:
        """A file, made unless it was for this result. It is opened before another can take its place."""
        name = f"{folder.id}-{folder.result_stamp()}{suffix}"
        with self._lock:
            if name not in self._made:
                path = Path(self._folder.name) / name
                make(path)
                self._made[name] = path
            self._made.move_to_end(name)
            while len(self._made) > KEPT:
                self._made.popitem(last=False)[1].unlink(missing_ok=True)
            file = self._made[name].open("rb")
        size = str(self._made[name].stat().st_size)

        def blocks() -> Iterator[bytes]:
            with file:
                while block := file.read(BLOCK):
                    yield block

        return StreamingResponse(blocks(), media_type=kind, headers={"content-length": size})
