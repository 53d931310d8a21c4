"""Files and folders are written whole, or what was there stays."""

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from npax.compiled import keep_compiled_programs
from npax.files import held, replaced, write_atomically


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file(call, tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def fail(*_):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError, match="no space left"):
            write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_where_folders_cannot_be_opened_files_are_written_all_the_same(tmp_path, monkeypatch):
    def fail(*_):
        raise PermissionError("a folder")

    with monkeypatch.context() as patch:  # as on Windows
        patch.delattr(os, "O_DIRECTORY")
        patch.setattr(os, "open", fail)
        write_atomically(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_is_held_by_one_at_a_time(tmp_path):
    for _ in range(2):
        with held(tmp_path / "new"):
            with pytest.raises(BlockingIOError), held(tmp_path / "new"):
                pass
            with held(tmp_path):
                assert (tmp_path / "new").is_dir()


def write(path: Path, text: str) -> None:
    with replaced(path) as partial:
        assert partial.suffix == path.suffix and partial.parent == path.resolve().parent
        partial.write_text(text)


@pytest.mark.parametrize("way", [write, lambda path, text: write_atomically(path, text.encode())])
def test_what_a_link_leads_to_is_replaced(way, tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "latest.txt"
    link.symlink_to(tmp_path / "disk" / "map.txt")
    for text in ("old", "new"):
        way(link, text)
        assert link.is_symlink() and (tmp_path / "disk" / "map.txt").read_text() == text
    assert [p.name for p in (tmp_path / "disk").iterdir()] == ["map.txt"]


def test_a_file_is_replaced_whole_and_its_folder_made(tmp_path):
    path = tmp_path / "new" / "map[1].png"
    write(path, "old")
    write(path, "new")
    assert path.read_text() == "new" and list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_what_stops_the_writing_leaves_the_old_file_alone(stop, tmp_path):
    path = tmp_path / "map.png"
    write(path, "old")
    with pytest.raises(stop), replaced(path) as partial:
        partial.write_text("half")
        raise stop
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.csv"
    path.write_text("old")
    path.chmod(0o600)
    with replaced(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600


def test_a_user_without_a_home_has_no_compiled_programs_kept(monkeypatch):
    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    keep_compiled_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ


def test_an_error_of_the_disk_names_the_file(tmp_path):
    path = tmp_path / "map.png"
    with pytest.raises(OSError, match=r"No space left on device: '.*map\.png'"), replaced(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match=r"denied: '.*/map\.png'"), replaced(path) as partial:
        raise PermissionError(errno.EACCES, "Permission denied", str(partial))


HERE, THERE = "0badcafe", "feedc0de"


@pytest.fixture
def gone():
    """The number of a process that is no more."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@pytest.mark.parametrize("ending", [".zarr", ""])
def test_what_killed_processes_left_goes_and_strangers_stay(ending, gone, tmp_path, monkeypatch):
    monkeypatch.setattr("npax.files._HERE", HERE)
    path, stranger, alive = (
        tmp_path / f"{name}{ending}" for name in ("map", "other.partial-1", f"map.partial-{12 * '1'}-{HERE}-1")
    )
    (tmp_path / f"map.partial-{12 * '1'}-{HERE}-{gone}{ending}").mkdir()
    (tmp_path / f"map.partial-{12 * '1'}-{HERE}-{gone}{ending}" / "chunk").write_text("half")
    (tmp_path / f"map.partial-{12 * '1'}-{HERE}-{os.getpid()}{ending}").write_text("by this number before it was ours")
    stranger.mkdir()
    alive.mkdir()  # of the first process, which is not ours to disturb
    other = tmp_path / f"map.partial-{12 * '1'}-{HERE}-{gone}{ending}.nc"  # of the file map.nc, or of map.zarr.nc
    other.touch()
    with replaced(path) as partial:
        partial.mkdir()
    assert sorted(tmp_path.iterdir()) == sorted([path, stranger, alive, other])


def test_what_other_machines_write_stays_for_a_day(gone, tmp_path):
    path, new, old = (
        tmp_path / name
        for name in ("map.nc", f"map.partial-{12 * '1'}-{THERE}-{gone}.nc", f"map.partial-{12 * '1'}-{THERE}-1.nc")
    )
    new.touch()
    old.touch()
    os.utime(old, (time.time() - 100_000,) * 2)
    write(path, "whole")
    assert sorted(tmp_path.iterdir()) == sorted([path, new])


def test_what_users_call_so_stays(tmp_path):
    others = [tmp_path / f"run.partial-{name}" for name in ("notes", "old-2025", "v1-2-3-4")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    write_atomically(tmp_path / "run", b"new")
    with replaced(tmp_path / "run") as partial:
        partial.write_text("newer")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "run", *others])


def test_a_process_that_is_killed_leaves_nothing_for_long(tmp_path):
    path = tmp_path / "checkpoint"
    program = """
import os, signal
from pathlib import Path
from npax.files import write_atomically
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
write_atomically(Path("checkpoint"), b"half")
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path)
    assert len(list(tmp_path.iterdir())) == 1 and not path.exists()
    write_atomically(path, b"whole")
    assert list(tmp_path.iterdir()) == [path]


def test_threads_may_write_the_same_file(tmp_path):
    path, contents = tmp_path / "file", [bytes([i]) * 2**20 for i in range(4)]

    def write_often(content):
        for _ in range(10):
            write_atomically(path, content)
            assert path.read_bytes() in contents

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_often, contents))
    assert [*tmp_path.iterdir()] == [path]


def test_what_another_thread_is_writing_stays(tmp_path):
    path = tmp_path / "file.txt"
    with replaced(path) as one:
        one.write_text("one")
        with replaced(path) as other:
            assert one.exists() and one != other
            other.write_text("other")
        assert path.read_text() == "other"
    assert path.read_text() == "one" and [*tmp_path.iterdir()] == [path]
