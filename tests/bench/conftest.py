"""A table small enough to be run in a test, and two small models as its rows."""

import importlib
import types

import pytest

import npax
from npax.bench import Table
from npax.tasks import GPShiftTask, GPTask, RBFPrior

STEPS = 8


@pytest.fixture(scope="session")
def table():
    tasks = GPTask(RBFPrior(), nc=6, low=2, grid=4)
    return Table("small", "A small table", tasks, {"small": tasks}, batch_size=4, nodes=8)


@pytest.fixture(scope="session")
def shifts():
    moved = {f"shift-{shift:g}": GPShiftTask(RBFPrior(), nc=6, nt=5, shift=shift) for shift in (0.0, 1.0)}
    return Table("shift", "A shift", moved["shift-0"], moved, batch_size=4, nodes=8)


@pytest.fixture
def rows(monkeypatch):
    """Replaces the presets by `thin` and `wide`; `broken` cannot be built."""

    def thin(dx, dy, *, likelihood=None, key):
        return npax.CNP(dx, dy, encoder=(8,), size=8, decoder=(8,), likelihood=likelihood, key=key)

    def wide(dx, dy, *, key):
        return npax.CNP(dx, dy, encoder=(16,), size=16, decoder=(16,), key=key)

    def broken(dx, dy, *, key):
        raise RuntimeError("out of memory")

    def universal(*, key):
        return thin(1, 1, key=key)

    fake = types.ModuleType("fake")
    for function in (thin, wide, broken, universal):
        function.__module__ = "fake"
        setattr(fake, function.__name__, function)
    fake.CNP = npax.CNP
    monkeypatch.setattr(importlib.import_module("npax.bench.run"), "presets", fake)
    return fake
