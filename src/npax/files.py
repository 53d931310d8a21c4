"""Files and folders that are there whole, or as they were before."""

import contextlib
import hashlib
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


_PARTIAL: set[Path] = set()
"""What threads of this process are writing by `replaced`."""


def _numbered_here() -> str:
    """Where process numbers are those of this process: on the same machine since it was started, and in the same
    container, as several that share a folder may all have number 1."""
    known = [socket.gethostname()]
    with contextlib.suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        known.append(str(os.stat("/proc/self/ns/pid").st_ino))
    return hashlib.sha256(" ".join(known).encode()).hexdigest()[:8]


_HERE = _numbered_here()

_DAY = 86_400  # s


def is_remote(path: str | Path) -> bool:
    """Whether it is an address (`s3://...`), no path of this machine; one slash is left of two in a `Path`."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(path)) is not None


def write_atomically(path: Path, content: bytes) -> None:
    """After this returns the file is on disk; whenever the process dies it holds all of `content` or is as before."""
    path = path.resolve()  # a link stays one
    with _replaced(path, path.name, "") as partial, open(partial, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folders
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps other processes, and other calls, that ask for it out of a folder until it is left, or the process dies.

    **Raises** `BlockingIOError` where another one is in it. Where there are no locks (Windows, some network file
    systems) nobody is kept out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def replaced(path: Path) -> contextlib.AbstractContextManager[Path]:
    """Where to write a file or a folder that then takes the place of `path`; whatever stops it leaves there what was
    there, and a file keeps its permissions. The name that it gives has the ending of `path`. What killed processes left
    under such names goes: those of this machine at once, of others that share the folder after a day."""
    path = path.resolve()  # a link stays one
    return _replaced(path, path.stem, path.suffix)


@contextlib.contextmanager
def _replaced(path: Path, stem: str, ending: str) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    names = re.compile(rf"{re.escape(stem)}\.partial-[0-9a-f]{{12}}-([0-9a-f]{{8}})-(\d+){re.escape(ending)}")
    for leftover in path.parent.iterdir():
        found = names.fullmatch(leftover.name)
        if found and leftover not in _PARTIAL and _is_abandoned(leftover, *found.groups()):
            with contextlib.suppress(OSError):  # another user's
                _remove(leftover)
    partial = path.with_name(f"{stem}.partial-{uuid.uuid4().hex[:12]}-{_HERE}-{os.getpid()}{ending}")
    _PARTIAL.add(partial)
    try:
        yield partial
        if path.is_file():
            shutil.copymode(path, partial)  # who may read it is not for a rerun to say
        os.replace(partial, path)
    except OSError as error:
        if error.errno and error.filename in (None, partial, str(partial)):  # a full disk names none
            error.filename = str(path)
        raise
    finally:
        _remove(partial)
        _PARTIAL.discard(partial)


def _is_abandoned(partial, where, pid):
    """Whether the process that wrote it is gone, as far as one can tell."""
    if where == _HERE and os.name == "posix":
        return not _is_running(int(pid))
    try:
        return time.time() - partial.stat().st_mtime > _DAY
    except FileNotFoundError:
        return False


def _is_running(pid):
    """Whether another process has this number, as far as one can tell."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(path):
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
