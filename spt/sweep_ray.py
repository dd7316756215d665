"""A sweep on a Ray cluster: one task a model, wherever there is a device for it.

    ray start --head                    # and on the other machines: ray start --address HEAD:6379
    python -m spt sweep sweep.yaml --engine ray --address auto --store s3://bucket/sweep

Ray places the tasks, and starts one again on another machine when its worker has died. What was finished by then is
found in the store and not run a second time, so every run is done once. The store is a folder that all machines share,
where a run even goes on from its last step, or any fsspec address, to which finished runs are copied.
"""

from __future__ import annotations

import logging
import socket
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec

from spt.spec import RunSpec, UserError
from spt.store import Store
from spt.sweep import Outcome, one

RETRIES = 3  # of a task whose worker died; a run that fails by itself is not tried again
THREADS = 1  # processors of a task where the cluster has no GPU


def on_ray(
    groups: Sequence[Sequence[RunSpec]], store: Store, where: str | None, address: str | None
) -> Iterator[Outcome]:
    """Run each group as a task; outcomes come as they are there. Results are in `store` then.

    `where`: an fsspec address that all machines reach; None = the folder of `store` is shared by them.
    `address`: of the cluster, `auto` for the one this machine belongs to; None = Ray on this machine alone.
    Raises UserError where there is no Ray, or no cluster.
    """
    ray = _ray(address)
    resources = {"num_gpus": 1} if ray.cluster_resources().get("GPU") else {"num_cpus": THREADS}
    task = ray.remote(num_returns="streaming", max_retries=RETRIES, **resources)(_work)
    waiting = {}
    for group in groups:
        outcomes = task.remote([spec.model_dump() for spec in group], str(store.root), where)
        waiting[outcomes] = list(group)
    while waiting:
        (ready, *_), _ = ray.wait(list(waiting), num_returns=1)
        left = waiting[ready]
        try:
            outcome: Outcome = ray.get(next(ready))
        except StopIteration:
            del waiting[ready]
            continue
        except ray.exceptions.RayError as error:  # its worker died again and again
            del waiting[ready]
            lines = str(error).strip().splitlines() or [type(error).__name__]
            yield from (Outcome(spec, "failed", f"Its worker died: {lines[0]}") for spec in left)
            continue
        left.remove(outcome.spec)
        if where is not None and outcome.state in ("finished", "done before"):
            Remote(where).fetch(outcome.spec.run_id, store)
        yield outcome


def _ray(address: str | None) -> Any:
    try:
        import ray
    except ImportError:
        raise UserError("--engine ray needs Ray: pip install -r requirements-ray.txt, on all machines.") from None
    if ray.is_initialized():
        return ray
    try:
        if address and address.rpartition(":")[2].isdigit():  # Ray itself would try for minutes
            host, _, port = address.rpartition(":")
            socket.create_connection((host, int(port)), timeout=5).close()
        ray.init(address=address, log_to_driver=False, include_dashboard=False, logging_level=logging.WARNING)
    except (OSError, ValueError, RuntimeError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"There is no Ray cluster at {address}: {why}") from None
    return ray


def _work(specs: Sequence[dict[str, Any]], root: str, where: str | None) -> Iterator[Outcome]:
    """The task: all runs of one model, in turn, an outcome each and always in the same order.

    Ray repeats a task whose worker died and drops as many outcomes as it has passed on already.
    """
    from spt.experiment import ModelCache

    cache, machine = ModelCache(), socket.gethostname()
    with tempfile.TemporaryDirectory() as scratch:
        store, remote = Store(Path(root if where is None else scratch)), Remote(where) if where else None
        for settings in specs:
            spec = RunSpec(**settings)
            if remote.has_result(spec.run_id) if remote else store.has_result(spec.run_id):
                yield Outcome(spec, "done before", where=machine)
                continue
            outcome = one(spec, store, cache, device_is_ours=True)
            if remote:
                remote.keep(spec.run_id, store)
            yield outcome._replace(where=machine)


class Remote:
    """Run folders at an fsspec address: a bucket, or a folder of another machine."""

    def __init__(self, url: str) -> None:
        """Raises UserError for an address that no installed file system understands."""
        try:
            self.fs, root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise UserError(f"--store {url} is not possible: {error}") from None
        self.root = str(root).rstrip("/")

    def has_result(self, run_id: str) -> bool:
        """Whether that run is finished there."""
        return bool(self.fs.exists(f"{self.root}/{run_id}/result.json"))

    def keep(self, run_id: str, store: Store) -> None:
        """Copy a run there, its result last: its presence means that all the rest is."""
        folder = store.root / run_id
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
        for path in sorted(files, key=lambda path: path.name == "result.json"):
            self.fs.makedirs(f"{self.root}/{run_id}/{path.parent.relative_to(folder)}", exist_ok=True)
            self.fs.put_file(str(path), f"{self.root}/{run_id}/{path.relative_to(folder)}")

    def fetch(self, run_id: str, store: Store) -> None:
        """Copy a finished run from there, its result last."""
        head = f"{self.root}/{run_id}/"
        files = [name for name in self.fs.find(f"{self.root}/{run_id}")]
        for name in sorted(files, key=lambda name: name.endswith("/result.json")):
            path = store.root / run_id / str(name).removeprefix(head)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.fs.get_file(name, str(path))
