"""One side of a side-by-side timing, in a process of its own: JSON lines out, an empty line in for each round.

Imports only what both sides have (JAX), since the peer's interpreter has no npax.
"""

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable

import jax


def serve(run: Callable[[], object], about: dict, steps: int) -> None:
    """Warms up, says so, then for every line that comes in times calls of `run`, each of which does `steps` steps: the
    median of as many as begin within a second."""
    started = time.perf_counter()
    jax.block_until_ready(run())
    _say({**about, "jax": jax.__version__, "first_call_seconds": time.perf_counter() - started})
    for _ in sys.stdin:
        began, calls = time.perf_counter(), []
        while not calls or time.perf_counter() < began + 1:
            started = time.perf_counter()
            jax.block_until_ready(run())
            calls.append(time.perf_counter() - started)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        _say({"seconds": statistics.median(calls) / steps, "peak_gb": peak})


def best(function: Callable, *arguments, repeats: int = 10) -> float:
    """Seconds of the quickest of some calls, compiled before."""
    jax.block_until_ready(function(*arguments))
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def parameters(tree) -> int:
    return sum(a.size for a in jax.tree.leaves(tree))


def _say(content):
    print(json.dumps(content), flush=True)
