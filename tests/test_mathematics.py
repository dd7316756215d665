"""Mathematical equality, and that nothing a model writes can stop or end it."""

from __future__ import annotations

import threading
import time

import pytest

from spt.benchmarks import mathematics
from spt.benchmarks.mathematics import ends_with, equal


@pytest.mark.parametrize(
    ("answer", "reference", "same"),
    [
        ("16", "16.0", True),
        ("1,000", "1000", True),
        ("50\\%", "50%", True),
        ("\\frac{2}{4}", "1/2", True),
        ("-\\frac12", "-0.5", True),
        ("-\\frac12", "\\frac12", False),
        ("\\frac{4}{2}", "2", True),
        ("\\frac{4}{0}", "2", False),
        ("2\\sqrt{3}", "\\sqrt{12}", True),
        ("-2\\sqrt{3}", "\\sqrt{12}", False),
        ("\\frac{1}{2}\\sqrt{16}", "2", True),
        ("\\frac12\\sqrt{3}", "\\frac{\\sqrt{3}}{2}", True),
        ("-", "", False),
        ("-", "0", False),
        ("x^2+1", "1+x^2", True),
        ("(x+1)^2", "x^2+2x+1", True),
        ("\\{1,2\\}", "\\{2,1\\}", True),
        ("[1,2)", "(1,2]", False),
        ("x=5", "5", True),
        ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}", True),
        ("", "", False),
        ("$", "16", False),
        ("}{", "16", False),
        ("\\frac{1}{0}", "1", False),
        ("\u0000", "16", False),
        ("1" * 5000, "1" * 5000, False),
    ],
)
def test_equal(answer: str, reference: str, same: bool) -> None:
    assert equal(answer, reference) is same


def test_the_last_formula_of_a_text() -> None:
    assert ends_with("First $x$, and then $2\\sqrt{3}$.", "2\\sqrt{3}")
    assert not ends_with("First $2\\sqrt{3}$, and then $x$.", "2\\sqrt{3}")
    assert not ends_with("", "x")


def test_what_takes_too_long_is_different_and_the_next_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert equal("y+1", "1+y")  # the child runs
    monkeypatch.setattr(mathematics, "SECONDS", 0.5)
    start = time.perf_counter()
    assert not equal("8^{8^{8^8}}", "3")
    assert time.perf_counter() - start < 5
    monkeypatch.undo()
    assert equal("z+1", "1+z")


def test_it_works_outside_the_main_thread_and_for_several_at_once() -> None:
    found: list[bool] = []
    threads = [threading.Thread(target=lambda i=i: found.append(equal(f"a+{i}", f"{i}+a"))) for i in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_a_child_that_was_killed_is_started_again() -> None:
    assert equal("b+1", "1+b")
    assert mathematics._child is not None
    mathematics._child.kill()
    mathematics._child.wait()
    assert equal("c+1", "1+c")
    mathematics.stop()
    assert mathematics._child is None and equal("d+1", "1+d")
