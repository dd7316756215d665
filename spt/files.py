"""Writing files so that a crash leaves the old content or the new, never half of it. Imports no torch."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from spt.spec import UserError

_DISK_PROBLEMS = {
    errno.ENOSPC: "is full; free some space",
    errno.EDQUOT: "has no quota left; free some space",
    errno.EROFS: "cannot be written to; make it writable",
    errno.EACCES: "cannot be written to; make it writable",
}


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full or read-only disk into a UserError that names the folder; other errors pass."""
    try:
        yield
    except OSError as error:
        problem = _DISK_PROBLEMS.get(error.errno or 0)
        if problem is None:
            raise
        raise UserError(
            f"The place that holds {path} {problem}, or set SPT_HOME to a folder elsewhere, and start the run again."
        ) from error


def _make_folder(path: Path) -> None:
    """Only here do these errors mean a place that can be no folder; elsewhere a missing file is a fault of spt."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): set SPT_HOME to a folder elsewhere.") from error


def write_atomic(path: Path, data: bytes) -> None:
    """Replace `path` by `data`: temporary name, fsync, rename. The name is fixed, so a crash leaves one at most."""
    with disk_errors(path.parent):
        _make_folder(path.parent)
        temporary = path.with_name(f".{path.name}.tmp")
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())  # otherwise a power cut after the rename can leave an empty file
            os.replace(temporary, path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def write_new(path: Path, data: bytes) -> bool:
    """Write `path` unless it is there; whether it was written. Of several at once one succeeds."""
    with disk_errors(path.parent):
        try:
            with open(path, "xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        except OSError:
            path.unlink(missing_ok=True)
            raise
    return True


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Replace the folder `path` by one that holds exactly `files`."""
    with disk_errors(path.parent):
        temporary = path.with_name(f".{path.name}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        _make_folder(temporary)
        for name, data in files.items():
            if Path(name).name != name:
                raise ValueError(f"{name!r} is not a plain file name")
            (temporary / name).write_bytes(data)
        if path.exists():
            shutil.rmtree(path)
        os.rename(temporary, path)


def append_line(path: Path, line: str) -> None:
    """Append one line and flush. A torn tail, left by a crash in the middle of a line, is cut off first."""
    append_lines(path, [line])


def append_lines(path: Path, lines: list[str]) -> None:
    """Append several lines in one write."""
    with disk_errors(path.parent):
        _make_folder(path.parent)
        with open(path, "ab+") as file:
            _cut_torn_tail(file.fileno())
            file.write("".join(f"{line}\n" for line in lines).encode())


def _cut_torn_tail(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return
    end = os.pread(descriptor, size, 0).rfind(b"\n") + 1
    os.ftruncate(descriptor, end)


def complete_lines(path: Path, offset: int = 0) -> tuple[list[bytes], int]:
    """The complete lines from byte `offset` on, and the offset behind them. A torn last line is not complete.

    A file that is missing has no lines. One that was replaced since (it is shorter, or `offset` is not the start of a
    line) is read from its beginning.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if offset > size or (offset and os.pread(file.fileno(), 1, offset - 1) != b"\n"):
                offset = 0
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return [], 0
    end = data.rfind(b"\n") + 1
    return [line for line in data[:end].split(b"\n") if line], offset + end


def stamp(path: Path) -> tuple[int, int]:
    """Time of the last change and size; of a file that is not there (any more), zeros."""
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def evenly(lines: Sequence[bytes], most: int) -> Sequence[bytes]:
    """At most `most` of the lines, the first and the last among them."""
    last = len(lines) - 1
    return lines if last < most else [lines[round(i * last / (most - 1))] for i in range(most)]


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write in place of `path`, which is replaced once all is written; after an error it is as it was.

    For files that a user asked for by name: raises UserError where there is no place for them.
    """
    temporary = path.with_name(f".{path.name[:80]}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {(error.strerror or str(error)).lower()}.") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
