"""Who may do what, asked of the real server as browsers and scripts ask it. No worker, no model."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from spt import events as ev
from spt import queue
from spt.spec import RunSpec, UserError
from spt.store import RunFolder, Store
from spt.ui import access
from tests.ui import samples
from tests.ui.served import served
from tests.ui.visitor import Visitor

TOKEN = "swordfish & co"


@pytest.fixture
def public(spt_home: Path) -> Iterator[str]:
    """The address of a page that others reach, with a token."""
    with served(access.Rules(local=False, token=TOKEN)) as address:
        yield address


def started(visitor: Visitor, **settings: object) -> RunFolder:
    """Press Start; the run of these settings."""
    visitor.tell("start", "click", **settings)
    return Store().get(RunSpec.parse(**settings).run_id)


def stopped(folder: RunFolder) -> RunFolder:
    """As if a worker had begun and ended it."""
    folder.append(ev.RunStarted(run=folder.id))
    folder.append(ev.RunStopped())
    queue.cancel(folder.id)
    return folder


def operator(address: str) -> Visitor:
    visitor = Visitor(address)
    answer = visitor.http.get("/", params={"token": TOKEN, "run": "x"})
    assert answer.status_code == 200 and str(answer.url).endswith("/?run=x"), "the token leaves the address"
    return visitor


def test_a_run_belongs_to_the_browser_that_started_it(public: str) -> None:
    mine, other = Visitor(public), Visitor(public)
    folder = started(mine, seed=5)
    cookie = mine.http.cookies["spt-visitor"]
    assert folder.owner() == hashlib.sha256(cookie.encode()).hexdigest(), "only the hash is kept"
    assert queue.position(folder.id) == 0

    assert "Stop" in mine.shown(mine.open(folder.id))
    assert "Stop" not in other.shown(other.open(folder.id))
    other.tell("stop", "click")  # as a script, or a page that was open before
    assert "Only who started this run" in other.said and queue.position(folder.id) == 0

    # The same browser in another tab, after a restart of the server: only the cookie is the same.
    again = Visitor(public, {"spt-visitor": cookie})
    again.open(folder.id)
    again.tell("stop", "click")
    assert again.said == "" and queue.position(folder.id) is None
    assert folder.owner() is None, "nothing was begun, so whoever starts it next may have it"


def test_strangers_are_refused_by_every_handler(public: str) -> None:
    mine, other = Visitor(public), Visitor(public)
    finished = samples.finished(Store())
    halted = stopped(started(mine, seed=6))
    for folder, button, values in (
        (halted, "resume", {}),
        (finished, "again", {}),
        (finished, "judge-start", {"judge-model": "m"}),
    ):
        other.said = ""
        other.open(folder.id)
        other.tell(button, "click", **values)
        assert "Only who started this run" in other.said, button
        assert queue.entries() == []
    # Start is no way round: the run of the same settings is shown, and stays as it is.
    other.tell("start", "click", seed=6)
    assert queue.entries() == [] and halted.status() == "stopped"
    assert "the operator of this page, can resume it" in other.shown(other.open(halted.id))
    # Nor is another run in the address of the page, or a request without cookies or with made-up ones.
    for cookies in ({"spt-visitor": halted.owner() or ""}, {"spt-visitor": "x" * 43, "spt-operator": "y" * 64}):
        forged = Visitor(public, cookies)
        forged.open(halted.id)
        forged.tell("resume", "click")
        assert "Only who started this run" in forged.said and queue.entries() == []
    mine.open(halted.id)
    mine.tell("resume", "click")
    assert queue.position(halted.id) == 0


def test_the_operator_may_change_every_run(public: str) -> None:
    folder = started(Visitor(public), seed=7)
    boss = operator(public)
    seen = boss.shown(boss.open(folder.id))
    assert "You are the operator here" in seen and "Stop" in seen
    boss.tell("stop", "click")
    assert boss.said == "" and queue.entries() == []
    # The operator's cookie fits one browser alone, and does not hold the token.
    stolen = {"spt-operator": boss.http.cookies["spt-operator"]}
    assert TOKEN not in str(stolen)
    thief = Visitor(public, stolen)
    assert "operator here" not in thief.shown(thief.open())


@pytest.mark.parametrize("token", ["", "swordfish", "swordfish & co ", "ü", "x" * 10_000])
def test_a_wrong_token_is_one_sentence(public: str, token: str) -> None:
    answer = httpx2.get(public, params={"token": token}, trust_env=False)
    assert answer.status_code == 403 and "not the operator" in answer.text
    assert "set-cookie" not in answer.headers and "gradio" not in answer.text and TOKEN not in answer.text


def test_without_a_token_no_token_fits(spt_home: Path) -> None:
    with served(access.Rules(local=False)) as address:
        assert httpx2.get(address, params={"token": ""}, trust_env=False).status_code == 403
        folder = samples.finished(Store())
        visitor = Visitor(address)
        assert "Run again" not in visitor.shown(visitor.open(folder.id))


def test_cookies_are_no_scripts_business_and_fit_a_frame_over_https(public: str) -> None:
    plain = httpx2.get(public, trust_env=False)
    assert "HttpOnly; SameSite=Lax" in plain.headers["set-cookie"] and plain.headers["cache-control"] == "no-store"
    framed = httpx2.get(public, headers={"x-forwarded-proto": "https"}, trust_env=False)
    assert "HttpOnly; SameSite=None; Secure; Partitioned" in framed.headers["set-cookie"]
    kept = httpx2.get(public, cookies={"spt-visitor": "a" * 43}, trust_env=False)
    assert "set-cookie" not in kept.headers


def test_a_page_of_another_site_has_no_rights(public: str) -> None:
    mine = Visitor(public)
    folder = started(mine, seed=8)
    mine.open(folder.id)
    mine.http.headers["sec-fetch-site"] = "cross-site"
    mine.tell("stop", "click")
    assert "Only who started" in mine.said and queue.position(folder.id) == 0


def test_of_two_who_start_the_same_the_first_owns_it(spt_home: Path) -> None:
    folder = Store().create(RunSpec())
    visitors = [access.Visitor(id=f"{i:064}") for i in range(8)]
    barrier, may = threading.Barrier(8), {}

    def press(visitor: access.Visitor) -> None:
        barrier.wait()
        may[visitor.id] = visitor.may_start(folder)

    threads = [threading.Thread(target=press, args=(visitor,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [name for name, yes in may.items() if yes] == [folder.owner()]
    assert "owner" not in str(folder.spec) and folder.id == RunSpec().run_id


def test_one_person_at_their_own_machine_notices_nothing(spt_home: Path) -> None:
    with served(access.Rules()) as address:
        visitor = Visitor(address)
        assert not visitor.http.cookies
        folder = started(visitor, seed=9)
        assert folder.owner() is None and "Stop" in visitor.shown(visitor.open(folder.id))
        visitor.tell("stop", "click")
        assert queue.entries() == []


@pytest.mark.parametrize("rules", [access.Rules(read_only=True), access.Rules(False, TOKEN, read_only=True)])
def test_read_only_shows_and_changes_nothing(spt_home: Path, rules: access.Rules) -> None:
    folder = samples.finished(Store())
    with served(rules) as address:
        visitor = Visitor(address) if rules.local else operator(address)
        seen = visitor.shown(visitor.open(folder.id))
        assert "nothing can be started or changed here" in seen and "Zero-shot scored" in seen
        assert "Run again" not in seen and "Have a judge" not in seen
        assert "Press Start" not in visitor.shown(visitor.open())
        answer = visitor.tell("start", "click", seed=9)
        assert "nothing can be started" in visitor.shown(answer)
        visitor.open(folder.id)
        for button, values in (("again", {}), ("judge-start", {"judge-model": "m"}), ("stop", {})):
            visitor.said = ""
            visitor.tell(button, "click", **values)
            assert "nothing can be started" in visitor.said
        upload = visitor.http.post("/gradio_api/upload", files={"files": ("a.csv", b"question,answer\n")})
        assert upload.status_code == 403 and "nothing can be started" in upload.text
        assert queue.entries() == [] and len(Store().runs()) == 1


def test_without_word_of_the_gate_nobody_owns_anything(spt_home: Path) -> None:
    folder = Store().create(RunSpec())
    folder.claim("")
    assert not access.may_change(object(), folder)
    with pytest.raises(UserError, match="Only who started"):
        access.check(object(), folder)
