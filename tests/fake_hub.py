"""A model hub on this machine: a web server that answers like the real one, with its files and its errors."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def serve(
    models: dict[str, Path], commits: Sequence[str] = (), uploads: Path | None = None
) -> Iterator[tuple[str, list[str]]]:
    """Serve folders as `{id: folder}`; gives the address and the (growing) list of paths asked for.

    A data set's id starts with `datasets/`, and its one state has the `commits` too.
    An id that starts with `gated/` tells its files' names, and refuses the files themselves without the token
    "let-me-in". With `uploads` that token may make models and write to them; they lie in folders there.
    """
    asked: list[str] = []
    private: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Not on the test's output."""

        def do_HEAD(self) -> None:
            self.do_GET()

        def do_POST(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            write = path.endswith(("/repos/create", "/validate-yaml", "/preupload/main", "/commit/main"))
            if uploads is None or not write:
                return self.do_GET()
            asked.append(path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Authorization") != "Bearer let-me-in":
                return self.answer(403, b"", {})
            return self.write(uploads, path, [json.loads(line) for line in body.splitlines()])

        def write(self, folder: Path, path: str, lines: list[dict[str, Any]]) -> None:
            """Make a repository, say that all files are small, or take their content."""
            if path == "api/validate-yaml":
                return self.json({"errors": [], "warnings": []})
            if path == "api/repos/create":
                name = f"{lines[0]['organization']}/{lines[0]['name']}"
                address = f"http://{self.headers['Host']}/{name}"
                if name in models:
                    return self.answer(409, json.dumps({"url": address}).encode(), {"Content-Type": "application/json"})
                if lines[0].get("private"):
                    private.add(name)
                models[name] = folder / name
                models[name].mkdir(parents=True)
                return self.json({"url": address, "name": name})
            name = "/".join(path.split("/")[2:4])
            if path.endswith("/preupload/main"):
                files = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in lines[0]["files"]]
                return self.json({"files": files})
            for line in lines:
                if line["key"] == "file":
                    (models[name] / line["value"]["path"]).write_bytes(base64.b64decode(line["value"]["content"]))
            address = f"http://{self.headers['Host']}/{name}/commit/{COMMIT}"
            return self.json({"commitOid": COMMIT, "commitUrl": address, "success": True})

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path).strip("/")
            asked.append(path)
            parts = path.split("/")
            if parts[:2] == ["api", "models"]:
                name, rest = "/".join(parts[2:4]), parts[4:]
            elif parts[:2] == ["api", "datasets"]:
                name, rest = "/".join(parts[1:4]), parts[4:]
            elif parts[0] == "datasets":
                name, rest = "/".join(parts[:3]), parts[3:]
            else:
                name, rest = "/".join(parts[:2]), parts[2:]
            if name not in models:
                return self.answer(401, b"", {"X-Error-Code": "RepoNotFound"})
            if len(rest) > 1 and rest[1] not in ("main", COMMIT, *commits):
                return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
            files = {str(f.relative_to(models[name])): f for f in sorted(models[name].rglob("*")) if f.is_file()}
            commit = rest[1] if len(rest) > 1 and rest[1] in commits else COMMIT
            if path.startswith("api/") and rest[:1] == ["tree"]:
                under = "".join(f"{part}/" for part in rest[2:])
                found = [self.entry(file, path) for path, file in files.items() if path.startswith(under)]
                folders = {path.split("/")[0] for path in files if "/" in path} if not under else set()
                found += [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in sorted(folders)]
                return self.json(found) if found else self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            if path.startswith("api/") and rest[:1] == ["paths-info"]:
                asked_for = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
                return self.json([self.entry(files[name], name) for name in asked_for if name in files])
            if path.startswith("api/"):
                siblings = [{"rfilename": path, "size": file.stat().st_size} for path, file in files.items()]
                return self.json({"id": name, "sha": commit, "siblings": siblings, "private": name in private})
            if name.startswith("gated/") and self.headers.get("Authorization") != "Bearer let-me-in":
                return self.answer(403, b"", {"X-Error-Code": "GatedRepo"})
            file = files.get("/".join(rest[2:]))
            if file is None:
                return self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            body = file.read_bytes()
            etag = hashlib.sha1(body).hexdigest()
            return self.answer(200, body, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})

        def entry(self, file: Path, path: str) -> dict[str, object]:
            body = file.read_bytes()
            return {"type": "file", "path": path, "size": len(body), "oid": hashlib.sha1(body).hexdigest()}

        def json(self, value: object) -> None:
            self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
