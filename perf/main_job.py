"""Time and memory of the main job: `capitals` on the bundled model, all three methods, from the command to the table.

    python -m perf.main_job [RUNS]

Runs whole processes one after another in a store of their own, and prints the median of each figure with its range.
Figures are those of the machine as it is: close other programs first.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from urllib.error import URLError
from urllib.request import urlopen

from spt.events import MethodScored, ModelLoaded, Probe, RunStarted, StepLoss
from spt.home import home
from spt.store import Store

PORT = 7961


def main_job(root: Path) -> dict[str, float]:
    """One run; seconds, MiB and rates."""
    command = [sys.executable, "-m", "spt", "run", "--model", "bundled", "--benchmark", "capitals", "--json", "--again"]
    start = time.time()
    done = subprocess.run(command, env={**os.environ, "SPT_HOME": str(root)}, capture_output=True, check=True)
    end = time.time()
    result = json.loads(done.stdout)
    events = Store(root / "runs").get(result["run"]).events()
    at = {kind: next(e.time for e in events if isinstance(e, kind)) for kind in (RunStarted, ModelLoaded, Probe)}
    steps = [e.seconds for e in events if isinstance(e, StepLoss)]
    last = max(e.time for e in events if isinstance(e, MethodScored))
    return {
        "command to exit, s": end - start,
        "start to last score, s": last - at[RunStarted],
        "model loaded to first curve point, s": at[Probe] - at[ModelLoaded],
        "tuning step, s": median(steps),
        "peak memory, MiB": result["peak_memory_mb"],
        **{f"{m} exact match": scores["exact_match"]["rate"] for m, scores in result["methods"].items()},
        **{f"{m} format": scores["format"]["rate"] for m, scores in result["methods"].items()},
    }


def page_answers(root: Path) -> dict[str, float]:
    """Seconds from `python app.py` to the first answer of the page."""
    app = Path(__file__).parent.parent / "app.py"
    start = time.time()
    server = subprocess.Popen(
        [sys.executable, str(app)], env={**os.environ, "SPT_HOME": str(root), "PORT": str(PORT)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        while True:
            try:
                urlopen(f"http://127.0.0.1:{PORT}/").read()
                return {"app.py to first answer, s": time.time() - start}
            except URLError:
                if time.time() - start > 120:
                    raise
                time.sleep(0.05)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copytree(home() / "models", root / "models")
        rows = [main_job(root) | page_answers(root) for _ in range(runs)]
    print(f"{platform.platform()}, {os.cpu_count()} cores, {runs} runs: median (lowest–highest)")
    for name in rows[0]:
        values = [row[name] for row in rows]
        print(f"| {name} | {median(values):.2f} ({min(values):.2f}–{max(values):.2f}) |")


if __name__ == "__main__":
    main()
