"""A judge on this machine: a web server that speaks /v1/chat/completions, with the moods of real ones.

    with serve(lambda ask: verdict(True, True)) as judge:
        judge.url, judge.asked, judge.most_at_once
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Ask:
    """One request as the server got it."""

    number: int  # from 0
    body: dict[str, Any]
    headers: dict[str, str]
    path: str

    @property
    def case(self) -> dict[str, Any]:
        """What is to be judged, read back out of the prompt as a model would read it."""
        text = self.body["messages"][0]["content"]
        found = json.JSONDecoder().raw_decode(text[text.index('{\n "question"') :])[0]
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Reply:
    """What the server answers: a text as a chat completion, or a raw body of any status."""

    text: str | None = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    raw: bytes | None = None


@dataclass
class Server:
    url: str = ""
    asked: list[Ask] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    now: int = 0
    most_at_once: int = 0


def verdict(correct: bool, in_format: bool, **reply: Any) -> Reply:
    return Reply(json.dumps({"correct": correct, "in_format": in_format}), **reply)


def error(status: int, message: str = "no", **headers: str) -> Reply:
    """An error as vLLM and the hosted ones write it."""
    body = {"error": {"message": message, "type": "error", "code": status}}
    return Reply(status=status, raw=json.dumps(body).encode(), headers=headers)


@contextmanager
def serve(mood: Callable[[Ask], Reply], key: str | None = None) -> Iterator[Server]:
    """Serve on loopback. `mood` gives the reply to each request; a wrong key is answered by 401."""
    state, lock = Server(), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Not on the test's output."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                ask = Ask(len(state.asked), body, headers, self.path)
                state.asked.append(ask)
                state.times.append(time.monotonic())
                state.now += 1
                state.most_at_once = max(state.most_at_once, state.now)
            try:
                reply = mood(ask)
                if key is not None and headers.get("authorization") != f"Bearer {key}":
                    reply = error(401, "wrong key")
                elif self.path != "/v1/chat/completions":
                    reply = error(404, "no such path")
                time.sleep(reply.delay)
            finally:
                with lock:
                    state.now -= 1
            self.answer(reply, body)

        def answer(self, reply: Reply, body: dict[str, Any]) -> None:
            completion = {
                "id": "1", "object": "chat.completion", "created": 1, "model": body.get("model"),
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply.text}}
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }  # fmt: skip
            data = json.dumps(completion).encode() if reply.raw is None else reply.raw
            try:
                self.send_response(reply.status)
                for name, value in {**reply.headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # whoever asked is gone
                self.close_connection = True

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that was killed is part of the tests."""

    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
