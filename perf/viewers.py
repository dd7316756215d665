"""What ten viewers of a live run cost it, and how quick and light the live page is.

    python -m perf.viewers                       # ten viewers against none, in turn, in one run of the bundled model
    python -m perf.viewers --browser             # one Chromium: latency, size of updates, requests of an idle page

Viewers are plain HTTP clients in a process of their own: they load the page, open the run and send its timer's event
once a second, as the browser does, and read the answer to its end. Ten browsers on two cores would be measured
themselves. Beside step times the processor's time of server, run and viewers is printed, which a busy machine disturbs
less: what the server uses is the most that it can take from a run that wants every core.
"""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import typer

from perf.runs_tab import wait_for
from spt import queue
from spt.events import StepLoss
from spt.home import home
from spt.spec import RunSpec
from spt.store import RunFolder, Store

SETTLE = 5.0  # seconds of a block that are not counted: viewers come and go


@contextmanager
def serving() -> Iterator[tuple[str, psutil.Process]]:
    """A page with runs of its own and the models of this user."""
    models = home().expanduser() / "models"
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "models").symlink_to(models)
        os.environ["SPT_HOME"] = place
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        server = subprocess.Popen([sys.executable, "app.py", "--port", str(port)], stdout=subprocess.DEVNULL)
        try:
            wait_for(f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}", psutil.Process(server.pid)
        finally:
            server.terminate()
            server.wait(60)


def begun(spec: RunSpec) -> RunFolder:
    """The run, once it makes steps."""
    folder = Store().create(spec)
    queue.submit(folder)
    while not losses(folder):
        if folder.status() == "failed":
            raise SystemExit(f"The run failed: {folder.events()[-1]}")
        time.sleep(0.5)
    return folder


def losses(folder: RunFolder) -> list[StepLoss]:
    return [event for event in folder.events() if isinstance(event, StepLoss)]


def used(process: psutil.Process) -> float:
    """Processor seconds so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def block(folder: RunFolder, watched: dict[str, psutil.Process], seconds: float) -> dict[str, float]:
    """Median step, and processor seconds a second of each process; of the run also those a step."""
    time.sleep(SETTLE)
    began, before = time.time(), {name: used(process) for name, process in watched.items()}
    steps = len(losses(folder))
    time.sleep(seconds)
    took = time.time() - began
    spent = {name: used(process) - before[name] for name, process in watched.items()}
    made = losses(folder)[steps:]
    if len(made) < 3:
        raise SystemExit("Too few steps in a block: make it longer with --seconds.")
    return {
        "step": median(event.seconds for event in made),
        "run, processor a step": spent["run"] / len(made),
        **{name: value / took for name, value in spent.items()},
    }


def viewers(pairs: int, seconds: float, number: int) -> None:
    with serving() as (address, server):
        folder = begun(RunSpec(steps=10_000, probe_every=0, items=4))
        run = next(child for child in server.children() if "spt.worker" in " ".join(child.cmdline()))
        alone, watched = [], []
        for _ in range(pairs):
            alone.append(block(folder, {"server": server, "run": run}, seconds))
            command = [sys.executable, "-m", "perf.viewers", "--view", address, "--run", folder.id]
            crowd = subprocess.Popen([*command, "--number", str(number)], stdout=subprocess.PIPE, text=True)
            assert crowd.stdout is not None
            crowd.stdout.readline()  # all have the page
            processes = {"server": server, "run": run, "viewers": psutil.Process(crowd.pid)}
            watched.append(block(folder, processes, seconds))
            crowd.terminate()
            crowd.wait(30)
            for name, each in (("0 viewers", alone[-1]), (f"{number} viewers", watched[-1])):
                print(f"{name}: " + ", ".join(f"{what} {value:.3f}" for what, value in each.items()), flush=True)
        for what in ("step", "run, processor a step"):
            ratios = [many[what] / none[what] for none, many in zip(alone, watched, strict=True)]
            shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
            print(f"{what}: {median(ratios):.3f} times as long with {number} viewers (pairs: {shown})")
        share = median(each["server"] for each in watched)
        print(f"server: {share * 100:.1f} % of one core with {number} viewers, "
              f"{median(each['server'] for each in alone) * 100:.1f} % with none")  # fmt: skip
        queue.stop(folder)


def view(address: str, run: str, number: int) -> None:
    """`number` clients, until this process is ended. Says so once all have the page."""
    from tests.ui.visitor import Visitor

    ready = threading.Barrier(number + 1)

    def look() -> None:
        visitor = Visitor(address)
        visitor.open(run)
        tick = visitor.event("", "tick")
        data: list[Any] = [visitor.components[given].get("value") for given in tick["inputs"]]
        ready.wait()
        while True:
            began = time.monotonic()
            visitor.heard.clear()
            visitor.send(tick, data)
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))

    for _ in range(number):
        threading.Thread(target=look, daemon=True).start()
    ready.wait()
    print("ready", flush=True)
    threading.Event().wait()


# In the page: when each step was first drawn, and whether a later redraw was needed for it.
_WATCH = """() => {
  window.seen = {};
  setInterval(() => {
    const x = document.querySelector('#loss-chart .plot')?.data?.[0]?.x || [];
    for (const step of x.slice(-3)) window.seen[step] ??= Date.now() / 1000;
  }, 25);
}"""


def browser() -> None:
    """One Chromium at a run that makes a step a second (no model: its events are written here), then at a still one."""
    import shutil

    from playwright.sync_api import sync_playwright

    from tests.ui.growing import growing
    from tests.ui.samples import finished

    with serving() as (address, _), sync_playwright() as playwright, growing(Store(), steps=500) as run:
        folder = run.folder
        run.steps(400)
        path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1360, "height": 900})
        network = page.context.new_cdp_session(page)
        network.send("Network.enable")
        streams: dict[str, list[int]] = {}
        asked: list[str] = []

        def request(event: dict[str, Any]) -> None:
            asked.append(event["request"]["url"])
            if "/queue/data" in event["request"]["url"]:
                streams[event["requestId"]] = [0, 0]

        def received(event: dict[str, Any]) -> None:
            if event["requestId"] in streams:
                streams[event["requestId"]][0] += event["dataLength"]
                streams[event["requestId"]][1] += event["encodedDataLength"]

        network.on("Network.requestWillBeSent", request)
        network.on("Network.dataReceived", received)
        page.goto(f"{address}/?run={folder.id}")
        page.wait_for_selector("#loss-chart .main-svg")
        page.evaluate(_WATCH)
        page.wait_for_timeout(3000)
        streams.clear()  # of the opening
        first = len(losses(folder))
        for _ in range(60):
            run.steps(1)
            page.wait_for_timeout(random.uniform(500, 1500))  # not in step with the page's clock
        page.wait_for_timeout(2000)
        drawn = {int(step): at for step, at in page.evaluate("() => window.seen").items()}
        late = [drawn[each.step] - each.time for each in losses(folder)[first:] if each.step in drawn]
        print(f"event to page: median {median(late):.2f} s, worst {max(late):.2f} s of {len(late)} steps")
        for what, index in (("text", 0), ("on the wire", 1)):
            sizes = sorted(size[index] / 1000 for size in streams.values() if size[0])
            print(f"update, {what}: median {median(sizes):.1f} kB, largest {sizes[-1]:.1f} kB of {len(sizes)}")
        page.goto(f"{address}/?run={finished(Store()).id}")
        page.wait_for_selector("#answers article")
        page.wait_for_timeout(5000)
        asked.clear()
        page.wait_for_timeout(30_000)
        print(f"idle page of a finished run: {len(asked) / 30:.2f} requests a second {sorted(set(asked))[:4]}")
        chromium.close()


def main(
    pairs: int = 4, seconds: float = 40.0, number: int = 10, browser_: bool = typer.Option(False, "--browser"),
    view_: str = typer.Option("", "--view", hidden=True), run: str = typer.Option("", hidden=True),
) -> None:  # fmt: skip
    """Measure; see the head of this file."""
    if view_:
        view(view_, run, number)
    elif browser_:
        browser()
    else:
        viewers(pairs, seconds, number)


if __name__ == "__main__":
    typer.run(main)
