"""Whatever kills a training, its resumption ends with the bytes of an uninterrupted run."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.random as jr
import pytest
from sines import fingerprint, train

from npax.training.checkpoint import checkpoints

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def uninterrupted():
    return fingerprint(train().model)


def start(folder, *manner):
    command = [sys.executable, str(HERE / "victim.py"), str(folder), *manner]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def steps_saved(folder):
    return int(checkpoints(folder)[-1].stem.removeprefix("step-")) if checkpoints(folder) else 0


def test_kill_9_in_training_and_in_writing_changes_no_byte(uninterrupted, tmp_path):
    # In the middle of training, from outside.
    victim = start(tmp_path)
    while steps_saved(tmp_path) < 4 and victim.poll() is None:
        time.sleep(0.01)
    victim.kill()
    _, errors = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, errors.decode()
    reached = steps_saved(tmp_path)
    assert 4 <= reached < 24

    # In the middle of writing a checkpoint: half a file, of another name, stays behind.
    victim = start(tmp_path, "fsync", "3")
    _, errors = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, errors.decode()
    assert reached < steps_saved(tmp_path) < 24
    assert list(tmp_path.glob("*.partial-*"))

    # Between the writing and the renaming.
    reached = steps_saved(tmp_path)
    victim = start(tmp_path, "replace", "2")
    _, errors = victim.communicate()
    assert victim.returncode == -signal.SIGKILL, errors.decode()
    assert reached < steps_saved(tmp_path) < 24

    reached = steps_saved(tmp_path)
    resumed = train(checkpoint=tmp_path)
    assert len(resumed.losses) == 24 - reached
    assert fingerprint(resumed.model) == uninterrupted
    assert not list(tmp_path.glob("*.partial-*"))


def test_ctrl_c_leaves_a_checkpoint_to_resume_from(uninterrupted, tmp_path):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with Ctrl-C ignored
    calls = []

    def interrupt(model):
        calls.append(model)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(checkpoint=tmp_path, evaluate=interrupt, evaluate_every=2)
    assert steps_saved(tmp_path) == 6
    resumed = train(checkpoint=tmp_path)
    assert len(resumed.losses) == 18
    assert fingerprint(resumed.model) == uninterrupted


def test_a_finished_run_is_not_trained_again(uninterrupted, tmp_path):
    first = train(checkpoint=tmp_path)
    again = train(checkpoint=tmp_path)
    assert fingerprint(first.model) == fingerprint(again.model) == uninterrupted
    assert again.losses.shape == (0,) and again.steps == 24
    anew = train(checkpoint=tmp_path, resume=False)
    assert anew.losses.shape == (24,)


def test_another_key_ends_elsewhere(uninterrupted):
    assert fingerprint(train(key=jr.key(4)).model) != uninterrupted
