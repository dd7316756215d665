"""Who may do what: one function decides, `may_change`, and every handler asks it before it does anything.

Where the page is reached from this machine alone and no token was given, everybody is the operator: one person at their
own machine notices nothing. Elsewhere a browser may change the runs that it started, the operator every run, and a
read-only server lets nobody change anything. `spt.ui.gate` finds out who sends a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spt.spec import UserError
from spt.store import RunFolder

READ_ONLY = "This page shows finished runs; nothing can be started or changed here."
NOT_YOURS = "Only who started this run, or the operator of this page, can change it."


@dataclass(frozen=True)
class Rules:
    """How the server was started."""

    local: bool = True  # everybody who reaches it is the operator, and may name paths of this machine
    token: str = ""  # makes a browser that knows it the operator
    read_only: bool = False


@dataclass(frozen=True)
class Visitor:
    """Who sends a request. Without a word from the gate: a stranger, who owns nothing."""

    id: str = ""  # hash of the browser's cookie; empty = none
    operator: bool = False
    read_only: bool = False
    by_token: bool = False  # the operator, and not for being alone here

    def may_change(self, folder: RunFolder) -> bool:
        """Whether this visitor may stop, resume, repeat, judge, cancel and delete this run."""
        if self.read_only:
            return False
        return self.operator or (bool(self.id) and folder.owner() == self.id)

    def may_start(self, folder: RunFolder) -> bool:
        """The same for Start: a run that nobody has started yet is that of the visitor who does."""
        if self.id and not self.read_only and folder.owner() is None and folder.status() == "new":
            folder.claim(self.id)
        return self.may_change(folder)


# At one's own machine.
OPERATOR = Visitor(operator=True)


def visitor(request: Any) -> Visitor:
    """Who sends a request (of Gradio or Starlette)."""
    found = getattr(getattr(request, "state", None), "visitor", None)
    return found if isinstance(found, Visitor) else Visitor()


def may_change(request: Any, folder: RunFolder) -> bool:
    """Whether the sender of a request may stop, resume, repeat, judge, cancel and delete this run."""
    return visitor(request).may_change(folder)


def check(request: Any, folder: RunFolder) -> RunFolder:
    """The folder. Raises UserError for a sender who may not change it."""
    check_open(request)
    if not may_change(request, folder):
        raise UserError(NOT_YOURS)
    return folder


def check_open(request: Any) -> None:
    """Raises UserError where nothing can be started, uploaded or changed at all."""
    if visitor(request).read_only:
        raise UserError(READ_ONLY)
