"""Checkpoints: whole or not at all, checked when read."""

from pathlib import Path

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.devices import on_host
from npax.packed import pack, unpack
from npax.training import DamagedFile
from npax.training.checkpoint import checkpoints, read_checkpoint, write_checkpoint


def state(value=0.0, size=5):
    return {"weights": jnp.full(size, value), "step": jnp.array(int(value)), "name": "static", "none": None}


def damaged(how, content):
    middle = len(content) - 7
    return {
        "truncated": content[: len(content) // 2],
        "empty": b"",
        "bit flipped in the weights": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "bit flipped in the description": content.replace(b"steps", b"stepz"),
        "zeros": bytes(len(content)),
        "text": b"not a checkpoint at all, but a letter",
    }[how]


HARM = ["truncated", "empty", "bit flipped in the weights", "bit flipped in the description", "zeros", "text"]


def test_what_is_read_is_what_was_written(tmp_path):
    assert read_checkpoint(tmp_path, state()) is None
    write_checkpoint(tmp_path, 7, state(3.0), {"steps": 10})
    found, about = read_checkpoint(tmp_path, state())
    assert (found["weights"] == 3.0).all() and found["step"] == 3 and found["name"] == "static"
    assert found["weights"].dtype == jnp.float32 and found["step"].dtype == jnp.int32
    assert about == {"steps": 10, "step": 7}


@pytest.mark.parametrize("leaf", [jnp.full((2, 3), 1.5, jnp.bfloat16), jnp.ones((), jnp.bfloat16), jr.key(3)], ids=str)
def test_types_that_numpy_lacks_come_back(leaf, tmp_path):
    write_checkpoint(tmp_path, 1, {"leaf": leaf}, {})
    found = read_checkpoint(tmp_path, {"leaf": jnp.zeros_like(leaf) if leaf.dtype == jnp.bfloat16 else jr.key(0)})[0]
    assert found["leaf"].dtype == leaf.dtype and np.array_equal(on_host(found["leaf"]), on_host(leaf))


def test_the_two_newest_stay(tmp_path):
    for step in (1, 2, 30, 400):
        write_checkpoint(tmp_path, step, state(float(step)), {})
    assert [path.name for path in checkpoints(tmp_path)] == ["step-000000030.safetensors", "step-000000400.safetensors"]
    assert read_checkpoint(tmp_path, state())[0]["step"] == 400


@pytest.mark.parametrize("how", HARM)
def test_a_damaged_file_is_named_and_the_one_before_is_used(how, tmp_path):
    write_checkpoint(tmp_path, 1, state(1.0), {"steps": 2})
    newest = write_checkpoint(tmp_path, 2, state(2.0), {"steps": 2})
    newest.write_bytes(damaged(how, newest.read_bytes()))
    with pytest.warns(UserWarning, match=rf"{newest.name}.* Going back to the checkpoint before it"):
        found, about = read_checkpoint(tmp_path, state())
    assert found["step"] == 1 and about["step"] == 1


def test_every_single_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "a.safetensors"
    content = pack({"a": np.arange(3.0), "b": np.ones((2, 2), np.int32)}, {"structure": {"value": 0.25}})
    path.write_bytes(content)
    whole = unpack(path)
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 4]) + content[i + 1 :])
        try:
            arrays, about = unpack(path)
        except DamagedFile as error:
            assert str(path) in str(error)
        else:  # a flip that changed nothing that is read
            assert about == whole[1] and all((arrays[name] == whole[0][name]).all() for name in whole[0])


def test_a_checkpoint_of_another_model_is_an_error(tmp_path):
    write_checkpoint(tmp_path, 1, state(size=5), {})
    with pytest.raises(ValueError, match="belongs to another model, optimiser or number of seeds"):
        read_checkpoint(tmp_path, state(size=6))


def test_leftovers_and_strangers_do_not_disturb(tmp_path):
    Path(tmp_path / "step-000000009.safetensors.partial-1").write_bytes(b"half")
    Path(tmp_path / "step-notanumber.safetensors").write_bytes(b"?")
    assert checkpoints(tmp_path) == [] and read_checkpoint(tmp_path, state()) is None
    write_checkpoint(tmp_path, 1, state(), {})
    assert not list(tmp_path.glob("*.partial-*"))


def test_a_new_run_in_an_old_folder_replaces_it(tmp_path):
    """Later steps there are of the run before, and must not be what the next one goes on with."""
    for step in (6, 8):
        write_checkpoint(tmp_path, step, state(float(step)), {})
    path = write_checkpoint(tmp_path, 4, state(44.0), {})
    assert path.exists() and checkpoints(tmp_path) == [path]
    assert read_checkpoint(tmp_path, state())[0]["step"] == 44
