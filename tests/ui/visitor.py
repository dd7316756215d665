"""A visitor of the page without a browser: cookies, a Gradio session, and the events a browser would send."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx2


class Visitor:
    """Speaks to a served page as its JavaScript does, over the queue. `press` and `tell` wait for the answer."""

    def __init__(self, address: str, cookies: dict[str, str] | None = None) -> None:
        self.http = httpx2.Client(
            base_url=address, timeout=300, follow_redirects=True, trust_env=False, cookies=cookies
        )
        self.session = secrets.token_hex(6)
        self.said = ""  # the last warning of the page
        self.heard: list[dict[str, Any]] = []  # all that the page was sent
        self.http.get("/")
        config = self.http.get("/config").json()
        self.components = {each["id"]: each["props"] for each in config["components"]}
        self.events = config["dependencies"]

    def event(self, element: str, kind: str) -> dict[str, Any]:
        """The event of a component, by its element id (the page has none); of several the one that changes most."""
        found = [
            event
            for event in self.events
            for target, name in event["targets"]
            if name == kind and (self.components.get(target) or {}).get("elem_id", "") == element
        ]
        if not found:
            raise LookupError(f"{element or 'the page'} has no event {kind}")
        return dict(max(found, key=lambda event: len(event["outputs"])))

    def tell(self, element: str, kind: str, query: str = "", **values: Any) -> dict[str, Any]:
        """Send an event; `values` replace inputs by element id, the others are as the page has them at first.

        Returns the last message of the server: `success`, and `output` with the data of all outputs.
        """
        event = self.event(element, kind)
        data = []
        for given in event["inputs"]:
            props = self.components[given]
            name = str(props.get("elem_id") or "").removeprefix("field-")
            data.append(values.get(name, props.get("value")))
        return self.send(event, data, query)

    def send(self, event: dict[str, Any], data: list[Any], query: str = "") -> dict[str, Any]:
        body = {"data": data, "fn_index": event["id"], "session_hash": self.session, "trigger_id": None}
        joined = self.http.post(f"/gradio_api/queue/join?{query}", json=body).raise_for_status().json()
        with self.http.stream("GET", "/gradio_api/queue/data", params={"session_hash": self.session}) as stream:
            last: dict[str, Any] = {}
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    message = json.loads(line[5:])
                    if "output" in message:
                        self.heard.append(message)
                        last = message
                    if message["msg"] == "log":
                        self.said = str(message["log"])
                    if message["msg"] == "process_completed" and message["event_id"] == joined["event_id"]:
                        break
            return last


    def open(self, run: str = "") -> dict[str, Any]:
        """Load the page, at a run or at none."""
        return self.tell("", "load", query=f"run={run}")

    def shown(self, answer: dict[str, Any]) -> str:
        """What an event changed, as one text."""
        return json.dumps(answer.get("output", {}))
