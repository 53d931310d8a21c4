"""Several devices and several processes find what one device finds."""

import inspect
import os
import socket
import subprocess
import sys
import unittest.mock
from pathlib import Path

import crew
import jax
import numpy as np
import pytest
from sines import train

from npax import devices

HERE = Path(__file__).parent
FOUR = "--xla_force_host_platform_device_count=4"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one device finds, in this process."""
    folder = tmp_path_factory.mktemp("alone")
    crew.save(folder / "found.npz", crew.everything(folder / "checkpoint"))
    return np.load(folder / "found.npz")


def start(folder, *manner, devices=1, **environment):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
    command = [sys.executable, str(HERE / "crew.py"), str(folder), *manner]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(command, env={**os.environ, "XLA_FLAGS": flags, **environment}, **pipes)


def printed(process):
    text, _ = process.communicate(timeout=300)
    assert process.returncode == 0, text
    return text


def test_four_devices_find_what_one_finds(alone, tmp_path):
    """They train and are stopped, three of them go on; they predict together, and one by itself."""
    printed(start(tmp_path, devices=4))
    found = np.load(tmp_path / "found.npz")
    assert len(found.files) == len(alone.files) == 12
    for name in found.files:
        assert np.allclose(found[name], alone[name], rtol=1e-5, atol=1e-5, equal_nan=True), name
    assert found["uneven skipped"] == np.sum(~np.isfinite(found["uneven losses"])) > 0
    assert not np.allclose(crew.uneven(key=4)["losses"], found["uneven losses"], atol=1e-2, equal_nan=True)


def test_two_processes_find_what_one_finds(alone, tmp_path):
    """Started as SLURM starts them. The first writes the checkpoint and hands it to the other, which has no file."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    slurm = {"SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_NODES": "1"}
    both = [
        start(tmp_path, "distributed", SLURM_PROCID=i, SLURM_LOCALID=i, JAX_COORDINATOR_PORT=port, **slurm)
        for i in ("0", "1")
    ]
    texts = [printed(process) for process in both]
    first, second = (np.load(tmp_path / i / "found.npz") for i in ("0", "1"))
    for name in set(first.files) - {"stopped files", "refused error"}:
        assert np.allclose(first[name], alone[name], rtol=1e-5, atol=1e-5), name
        assert np.array_equal(first[name], second[name]), name
    assert [int(found["stopped files"]) for found in (first, second)] == [1, 0]
    assert ["Training" in text for text in texts] == [True, False]
    assert [str(found["refused error"]) for found in (first, second)] == ["ValueError", "RuntimeError"]


def test_devices_of_no_use_are_refused():
    with pytest.raises(ValueError, match="`devices` must be some of this process's"):
        train(2, devices=[])


def test_a_named_default_device_works_alone():
    for named in ("cpu", jax.devices()[0]):
        with jax.default_device(named):
            assert devices.local_mesh().size == devices.global_mesh().size == 1


@pytest.mark.parametrize(
    "environment, expected",
    [({}, devices.cores()), ({"JAX_NUM_CPU_DEVICES": "3"}, 3), ({"XLA_FLAGS": FOUR}, 4), ({"BEFORE": "1"}, 1)],
)
def test_each_core_becomes_a_device_unless_told_otherwise(environment, expected):
    code = """if True:
        import os, jax, npax.devices
        if "BEFORE" in os.environ:
            jax.devices()
        npax.devices.one_device_per_core()
        print(jax.device_count())"""
    environment = {**{name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == expected


@pytest.mark.parametrize("cholesky, warned", [("jnp.linalg.cholesky", True), ("npax.linalg.cholesky", False)])
def test_samplers_that_several_cpus_cannot_draw_from_have_one(cholesky, warned):
    """Batches of factorisations of two devices would wait for each other for ever."""
    code = f"""if True:
        import warnings, jax, jax.numpy as jnp, jax.random as jr, npax, npax.linalg
        class Fields(npax.tasks.AbstractTasks):
            def sample(self, key):
                x = jr.uniform(key, (60, 1))
                y = {cholesky}(jnp.exp(-jnp.abs(x - x.T)) + 0.01 * jnp.eye(60)) @ jr.normal(key, (60, 1))
                return npax.Task.of(x[:30], y[:30], x[30:], y[30:])
        model = npax.CNP(1, 1, encoder=(4,), size=4, decoder=(4,), key=jr.key(0))
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = npax.fit(model, Fields(), steps=2, key=jr.key(0), progress=False)
        told = ["uses one of them" in str(warning.message) for warning in found]
        print(jax.device_count(), bool(jnp.isfinite(result.losses).all()), *told)"""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    environment = {**os.environ, "XLA_FLAGS": flags}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "True", *["True"] * warned]


def test_compiled_programs_are_kept_if_asked(tmp_path):
    code = """if True:
        import jax, npax
        jax.jit(lambda x: x + 1)(1.0)
        npax.devices.keep_compiled_programs()
        jax.jit(lambda x: x + 2)(1.0)"""
    known = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION")}
    environment = {"XDG_CACHE_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path), "HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env={**known, **environment}, check=True)
    assert list(tmp_path.rglob("jit__lambda*"))


def test_cores_are_shared_by_the_devices_of_a_mesh():
    cpus = jax.local_devices(backend="cpu")[:1]
    assert devices.cores_each(devices.global_mesh(cpus)) == devices.cores()
    gpu = unittest.mock.Mock(platform="gpu")
    mesh = unittest.mock.Mock(devices=np.array([gpu]), local_devices=[gpu])
    assert inspect.unwrap(devices.cores_each)(mesh) == 1
