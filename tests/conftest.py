import gc
import os
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MPLBACKEND", "agg")
# One thread for each of pytest's workers. With two, jaxlib's batched factorisations can wait for each other for ever.
os.environ.setdefault("NPROC", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more of them wait for each other, at full speed
# Most of the time of the tests is compilation: without optimisations it is half of that with few (but see `optimised`
# below); the second flag halves the rest twice; with the third, a program is compiled in one piece: by a fifth sooner,
# and in fewer of the memory maps that are counted below. These are for the versions that are known to have them, since
# XLA ends the process at a flag that it does not know.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1"
    + " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    * version("jaxlib").startswith("0.10."),
)

# Where in the sources an operation stands is written into each of its programs: a twentieth of the time of the tests.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

# Named by the environment, so that processes that tests start share what is compiled.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parent.parent / ".jax_cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")

import jax
import jax.random as jr
import numpy as np
import pytest

gc.set_threshold(50_000, 20, 100)  # tracing makes many small objects, few of them garbage
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items):
    """A file goes to one of pytest's workers, or a model's laws: what its tests share is compiled once, not by each.

    The longest files come first, so that at the end no worker waits for another."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: item.path.stem not in ("test_devices", "test_killed", "test_fit"))


def group(item):
    of_model = "model" in getattr(item, "fixturenames", ()) and hasattr(item, "callspec")
    return f"{item.path.stem}-{item.callspec.id}" if of_model else item.path.stem


def pytest_runtest_teardown(item, nextitem):
    """Forgets the compiled programs once they fill two thirds of the memory maps that Linux grants a process (65,530):
    at the limit jaxlib crashes."""
    maps = Path("/proc/self/maps")
    ends = nextitem is not None and group(nextitem) != group(item)
    if ends and maps.exists() and maps.read_text().count("\n") > 45_000:
        jax.clear_caches()


@pytest.fixture
def getkey():
    """A function that gives a new random key at every call, the same ones in every run."""
    keys = iter(jr.split(jr.key(0), 1000))
    return lambda: next(keys)


@pytest.fixture
def optimised():
    """For tests whose programs run for longer than it takes to optimise them: thousands of observations, the shipped
    model."""
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def compilations():
    """Its `count` grows with every program that XLA compiles or that is read from the cache."""
    seen = SimpleNamespace(count=0)

    def listen(event, seconds, **about):
        seen.count += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
