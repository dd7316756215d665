"""A judge behind an OpenAI-compatible endpoint: a vLLM server or a hosted one, through `InferenceClient`."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2
from huggingface_hub import InferenceClient, set_client_factory
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils._http import default_client_factory, hf_request_event_hook

from spt.judge import JudgeFailed, JudgeSettings, Messages, Refused

LONGEST_WAIT = 120.0  # seconds; also of a Retry-After
_HUGGING_FACE = (".huggingface.co", ".hf.co", ".hf.space", ".huggingface.cloud")
_TEMPORARY = {408, 409, 425, 429}  # and 5xx
_BAD_REQUEST = {400, 413, 415, 422}
_FATAL = {
    401: "does not accept the key: set SPT_JUDGE_API_KEY",
    402: "asks for payment",
    403: "does not allow this key to use the model",
    404: "knows no such model or path: check --judge and --judge-url",
    405: "does not answer chat completions there: check --judge-url",
}
# What a request asks for beyond the messages, most wanted first: servers that refuse one get the next.
_LIMITS = {"max_tokens": 1024, "temperature": 0.0}
_JSON = {"response_format": {"type": "json_object"}}
_NO_THINKING = {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}
_REQUESTS: tuple[dict[str, Any], ...] = (
    {**_LIMITS, **_JSON, **_NO_THINKING},
    {**_LIMITS, **_NO_THINKING},
    {**_LIMITS, **_JSON},
    _LIMITS,
    {},
)


class Endpoint:
    """Asks a server; threads may ask at the same time. Temporary failures are tried again, later and later."""

    revision: str | None = None

    def __init__(self, settings: JudgeSettings) -> None:
        assert settings.base_url is not None
        self.identity = settings.model
        self.concurrency = settings.concurrency
        self.retries = 0
        self._settings = settings
        self._request: dict[str, Any] | None = None  # the one of _REQUESTS that the server took
        self._closed = threading.Event()
        self._open = ExitStack()
        self._open.enter_context(_connections(settings))
        host = urlsplit(settings.base_url).hostname or ""
        # Never None: then the client would send the hub's stored token to whatever server this is.
        self._client = InferenceClient(
            base_url=settings.base_url, api_key=_key(host) or "none", timeout=settings.timeout
        )

    def close(self) -> None:
        """End waiting requests and connections."""
        self._closed.set()
        self._open.close()

    def ask(self, messages: Messages) -> str:
        if "qwen3" in self._settings.model.lower():  # for servers that leave chat_template_kwargs unread
            messages = [*messages[:-1], {**messages[-1], "content": messages[-1]["content"] + " /no_think"}]
        if self._request is not None:
            return self._persist(messages, self._request)
        for request in _REQUESTS:
            try:
                reply = self._persist(messages, request)
            except Refused as error:
                refusal = error
                continue
            self._request = request
            return reply
        raise refusal

    def _persist(self, messages: Messages, request: dict[str, Any]) -> str:
        """The reply to one request, tried again while that may help."""
        for attempt in range(self._settings.max_retries + 1):
            wait = min(LONGEST_WAIT, self._settings.backoff * 2**attempt) * random.uniform(0.5, 1.0)
            try:
                output: Any = self._client.chat_completion(messages, model=self._settings.model, **request)
                return str(output.choices[0].message.content or "")
            except OfflineModeIsEnabled:
                raise JudgeFailed("is on the hub, and HF_HUB_OFFLINE is set") from None
            except HfHubHTTPError as error:
                problem = _told(error)
                wait = max(wait, _retry_after(error.response))
            except TimeoutError:
                problem = f"gave no reply within {self._settings.timeout:g} s"
            except httpx2.RequestError as error:
                problem = f"cannot be reached ({_first_line(error)})"
            except (ValueError, TypeError, KeyError, AttributeError, IndexError):
                problem = "replies with something else than a chat completion"
            if attempt < self._settings.max_retries:
                self.retries += 1
                if self._closed.wait(wait):
                    break
        raise JudgeFailed(problem)


def _told(error: HfHubHTTPError) -> str:
    """What a temporary error status means. Raises for those that another attempt would not change."""
    status = error.response.status_code
    if status in _FATAL:
        raise JudgeFailed(f"{_FATAL[status]} (status {status})") from None
    if status in _BAD_REQUEST:
        raise Refused(f"status {status}, {_first_line(error)}") from None
    if status in _TEMPORARY or status >= 500:
        return f"answers with status {status}"
    raise JudgeFailed(f"answers with status {status}") from None


def _retry_after(response: httpx2.Response) -> float:
    """Seconds that a server asks to wait; 0 where it does not."""
    value = response.headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(0.0, seconds), LONGEST_WAIT)


def _key(host: str) -> str | None:
    """The user's key for a judge. The hub's token is for Hugging Face alone; no other server gets to see it."""
    hub = os.environ.get("HF_TOKEN") if _is_hugging_face(host) else None
    return os.environ.get("SPT_JUDGE_API_KEY") or hub


def _is_hugging_face(host: str) -> bool:
    return f".{host}".endswith(_HUGGING_FACE)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _connections(settings: JudgeSettings) -> Iterator[None]:
    """Connections of the hub library as a judge needs them, for a while.

    Enough for all requests at once, past the proxy to this machine itself, and also where HF_HUB_OFFLINE is set: that
    is about the hub, and the endpoint is the user's.
    """
    host = urlsplit(settings.base_url or "").hostname or ""

    def check(request: httpx2.Request) -> None:
        if request.url.host != host or _is_hugging_face(host):
            hf_request_event_hook(request)

    def factory() -> httpx2.Client:
        around_proxy = {f"all://[{host}]" if ":" in host else f"all://{host}": None} if _is_loopback(host) else None
        limits = httpx2.Limits(max_connections=settings.concurrency, max_keepalive_connections=settings.concurrency)
        return httpx2.Client(
            event_hooks={"request": [check]}, follow_redirects=True, timeout=None, mounts=around_proxy, limits=limits
        )

    set_client_factory(factory)
    try:
        yield
    finally:
        set_client_factory(default_client_factory)


def _first_line(error: BaseException) -> str:
    """What a server or library says, short enough for a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return lines[-1][:200].rstrip(".")
