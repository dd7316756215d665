"""Whether two answers are mathematically equal, by math-verify, in a process of its own.

Models write anything, `9^{9^{9^9}}` included, and sympy may then compute for hours. math-verify's own time limit is an
alarm signal, which works in the main thread alone. So it runs in a child, one for all comparisons, that is ended where
it takes too long; the two answers then count as different. Most answers are settled without it, as text or number.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import subprocess
import sys
import threading
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import IO

from spt.benchmarks.answers import parse_number
from spt.spec import UserError

SECONDS = 5.0  # for one comparison
START_SECONDS = 60.0  # for importing sympy on a busy machine
MAX_LENGTH = 2000  # characters; a longer answer is no answer

_SPACING = re.compile(r"\\[,;:! ]|\\left|\\right|\\displaystyle|\$|\s+")
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]frac(?![A-Za-z])")
# A whole number or a fraction, a root, or one times the other.
_SIMPLE = re.compile(
    r"(?P<sign>-?)(?:(?P<a>\d{1,30})(?:/(?P<b>\d{1,30}))?|\\frac\{(?P<c>\d{1,30})\}\{(?P<d>\d{1,30})\}|\\frac(?P<e>\d)(?P<f>\d))?"
    r"(?:\\sqrt\{(?P<root>\d{1,30})\})?"
)
_lock = threading.Lock()
_child: subprocess.Popen[str] | None = None


@lru_cache(maxsize=100_000)
def equal(answer: str, reference: str) -> bool:
    """Whether two LaTeX expressions, given without box or dollar signs, are the same."""
    a, b = _plain(answer), _plain(reference)
    if not a or not b or max(len(a), len(b)) > MAX_LENGTH:
        return False
    if a == b:
        return True
    x, y = parse_number(a.replace(r"\%", "%")), parse_number(b.replace(r"\%", "%"))
    if x is not None and y is not None:
        return x == y
    p, q = _square(a), _square(b)
    if p is not None and q is not None:
        return p == q
    return _ask(rf"\boxed{{{answer}}}", rf"\boxed{{{reference}}}")


@lru_cache(maxsize=100_000)
def ends_with(response: str, reference: str) -> bool:
    """Whether the last formula of a response, as math-verify finds it, is the reference."""
    return bool(response.strip()) and _ask(response[-MAX_LENGTH:], rf"\boxed{{{reference}}}")


def _square(plain: str) -> Fraction | None:
    """The square, with the sign of the number, of `5`, `3/4`, `\\frac{3}{4}`, `2\\sqrt{3}` and the like: two such
    numbers are equal where these are. None for anything else, decimals among it."""
    match = _SIMPLE.fullmatch(plain)
    if match is None or not plain.strip("-") or (match["b"] and match["root"]):  # 1/2√3 can be read in two ways
        return None
    sign, root, *numbers = match.group("sign"), match.group("root"), *match.group("a", "b", "c", "d", "e", "f")
    above, *below = [int(number) for number in numbers if number] or [1]
    if below == [0]:
        return None
    square = Fraction(above, *below) ** 2 * (int(root) if root else 1)
    return -square if sign else square


def _plain(text: str) -> str:
    """Without what LaTeX only shows in another way: spacing, upright letters, big fractions."""
    return _SPACING.sub("", _FRACTION.sub(r"\\frac", _TEXT.sub(r"\1", text))).rstrip(".")


def _ask(answer: str, reference: str) -> bool:
    """Ask the child; False where it takes too long or ends."""
    global _child
    with _lock:
        if _child is None or _child.poll() is not None:
            _child = _start()
        requests, replies = _child.stdin, _child.stdout
        assert requests is not None and replies is not None
        try:
            requests.write(json.dumps([answer, reference]) + "\n")
            requests.flush()
            reply = _line(replies, SECONDS)
        except OSError:
            reply = ""
        if not reply:
            stop()
        return reply.strip() == "true"


def _start() -> subprocess.Popen[str]:
    root = str(Path(__file__).parents[2])
    child = subprocess.Popen(
        [sys.executable, "-m", "spt.benchmarks.mathematics"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))},
        start_new_session=True,  # Ctrl-C is for the run, which then ends the child itself
    )
    assert child.stdout is not None
    if _line(child.stdout, START_SECONDS).strip() != "ready":
        child.kill()
        child.wait()
        raise UserError("math-verify, which compares \\boxed answers, does not load: pip install math-verify==0.9.0.")
    atexit.register(stop)
    return child


def _line(stream: IO[str], seconds: float) -> str:
    """One line; empty where none comes in time or the stream ends. The child writes a line at once, never a part."""
    return stream.readline() if select.select([stream], [], [], seconds)[0] else ""


def stop() -> None:
    """End the child."""
    global _child
    if _child is not None:
        _child.kill()
        _child.wait()
        for stream in (_child.stdin, _child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was not yet sent is lost with the child
                    stream.close()
    _child = None


def _serve() -> None:
    """The child: a pair of texts a line in, `true` or `false` a line out. Ends with its input."""
    import logging

    from math_verify import parse, verify

    def same(answer: str, reference: str) -> bool:
        first, second = (parse(text, parsing_timeout=None) for text in (reference, answer))
        return bool(verify(first, second, timeout_seconds=None))

    logging.disable(logging.CRITICAL)
    same(r"\boxed{0.5}", r"\boxed{\frac{1}{2}}")  # much is loaded at the first comparison: no answer's time
    print("ready", flush=True)
    for line in sys.stdin:
        try:
            equal = same(*json.loads(line))
        except Exception:  # garbage in: whatever the parser makes of it, it is not the answer
            equal = False
        print("true" if equal else "false", flush=True)


if __name__ == "__main__":
    _serve()
