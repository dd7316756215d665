"""Answer formats: how a target looks, where an answer ends, whether it is in form, and whether it is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from spt.benchmarks.base import Example


class AnswerFormat(Protocol):
    """One class a form. All checks see the response after `trim`."""

    name: str
    closed: bool
    max_new_tokens: int

    def trim(self, text: str) -> tuple[str, bool]:
        """Cut a raw generation where the answer ends, by this format's one rule for all methods.

        Returns (kept text without surrounding white space, complete); `complete` tells the decoder that nothing
        after this point can matter, so that it may stop. Must be stable: once complete, more text changes nothing.
        """

    def in_format(self, response: str, example: Example) -> bool:
        """In the form, right or not."""

    def exact_match(self, response: str, example: Example) -> bool:
        """Right and in the form."""

    def knows(self, response: str, example: Example) -> bool:
        """Right, in the form or not, by rule (open formats; closed ones rank options by likelihood instead)."""
