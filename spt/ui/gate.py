"""The gate before the page's web server: who sends a request, by cookies; what a read-only server takes; the token.

A browser gets a random cookie that no script can read. It outlives reloads, tabs and restarts of the server, which
Gradio's own session does not. `/?token=…` makes a browser the operator until it is closed; the token leaves the address
at once, and the cookie it is exchanged for says nothing about it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from spt.ui import access
from spt.ui.plain import plain_page

VISITOR, OPERATOR = "spt-visitor", "spt-operator"
YEAR = 365 * 24 * 3600
WRONG_TOKEN = "This is not the operator's token of this page: give the one that the server was started with."


class Gate:
    """ASGI middleware: puts the `Visitor` into `request.state.visitor`."""

    def __init__(self, app: ASGIApp, rules: access.Rules) -> None:
        self.app = app
        self.rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request, rules = Request(scope), self.rules
        if rules.read_only and request.method == "POST" and "/upload" in request.url.path:
            await plain_page(403, access.READ_ONLY)(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        if rules.local:
            state["visitor"] = access.Visitor(operator=True, read_only=rules.read_only)
            await self.app(scope, receive, send)
            return
        cookie = request.cookies.get(VISITOR, "")
        known = re.fullmatch(r"[\w-]{43}", cookie) is not None
        cookie = cookie if known else secrets.token_urlsafe(32)
        if "token" in request.query_params and request.url.path == "/":
            await self._exchange(request, cookie)(scope, receive, send)
            return
        state["visitor"] = self._visitor(request, cookie)
        await self.app(scope, receive, send if known else _with_cookie(send, _cookie(request, VISITOR, cookie, YEAR)))

    def _visitor(self, request: Request, cookie: str) -> access.Visitor:
        # Another site's page can make a browser send its cookies along: such a request has no rights.
        if request.method not in ("GET", "HEAD") and request.headers.get("sec-fetch-site") == "cross-site":
            return access.Visitor(read_only=self.rules.read_only)
        given = request.cookies.get(OPERATOR, "")
        operator = bool(self.rules.token) and _same(given, self._proof(cookie))
        return access.Visitor(_hash(cookie), operator, self.rules.read_only, by_token=operator)

    def _exchange(self, request: Request, cookie: str) -> Response:
        """The answer to `/?token=…`: the same address without it, as the operator; or one sentence."""
        given = request.query_params["token"]
        if not self.rules.token or not _same(given, self.rules.token):
            return plain_page(403, WRONG_TOKEN)
        rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
        response = RedirectResponse(f"?{urlencode(rest)}" if rest else ".", status_code=303)
        response.headers.append("set-cookie", _cookie(request, VISITOR, cookie, YEAR))
        response.headers.append("set-cookie", _cookie(request, OPERATOR, self._proof(cookie)))
        response.headers["cache-control"] = "no-store"
        return response

    def _proof(self, cookie: str) -> str:
        """What the operator's cookie says: only who knows the token can make it, and it fits one browser alone."""
        return hmac.new(self.rules.token.encode(), cookie.encode(), hashlib.sha256).hexdigest()


def _hash(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()


def _same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def _cookie(request: Request, name: str, value: str, seconds: int | None = None) -> str:
    """The header. In a Space the page stands in a frame of another site: only such a cookie arrives there."""
    proxied = request.headers.get("x-forwarded-proto", request.url.scheme)
    where = "SameSite=None; Secure; Partitioned" if proxied.startswith("https") else "SameSite=Lax"
    age = f"; Max-Age={seconds}" if seconds else ""
    return f"{name}={value}; Path=/; HttpOnly; {where}{age}"


def _with_cookie(send: Send, cookie: str) -> Send:
    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.append("set-cookie", cookie)
            headers["cache-control"] = "no-store"  # two browsers behind one proxy are two visitors
        await send(message)

    return wrapped
