"""One figure of the timing tables: `python -m npax.bench.speed_cell '{"row": "tnp_kr_sa", "nc": 100, "nt": 1000}'`.

Prints one JSON line: the seconds of each call and the peak memory.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from ..attention import DenseAttention
from ..blocks import scan_blocks
from ..inference import Exact, Tiled
from ..inference.predict import chunk_size
from ..models import TNPD, presets
from ..models._base import context_features, target_features
from ..serialise import load
from .speed import EXACT, TILED

CORNER = 4096
"""Targets that the tiles are compiled with."""
ENOUGH = 1.0
"""Seconds of calls; one call at least, twenty at most."""


def call(row: str, nc: int, nt: int) -> Callable[[], object]:
    """A prediction of one task, compiled: moments at `nt` places of the plane from `nc` observations, as users ask for
    them (`Exact`, `Tiled`)."""
    rng = np.random.default_rng(0)
    x, places = (rng.uniform(-2, 2, (n, 2)) for n in (nc, nt))
    y = np.sin(3 * x[:, :1])
    if row == "tnp_d_masked":
        arguments = TNPD(2, 1, attention=DenseAttention(), key=jr.key(0)), *(jnp.float32(a) for a in (x, y, places))
        program: Any = eqx.filter_jit(masked)
        compiled = program.lower(*arguments).compile()
        return lambda: compiled(*arguments)
    if row == TILED:
        tiled = Tiled(load("gp-universal"), x, y)
        tiled(places[np.argsort(np.abs(places + 2).max(axis=1))[:CORNER]])  # compiles: as dense as all of them
        return lambda: tiled(places)
    shipped = row == EXACT
    model = load("gp-universal") if shipped else getattr(presets, row)(2, 1, key=jr.key(0))

    def exact(places):
        return Exact(model, x, y, normalize=shipped)(places)  # conditions anew

    exact(places[: chunk_size(model, jax.default_backend()) + 1])  # compiles
    return lambda: exact(places)


def masked(
    model: TNPD, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], xt: Float[Array, "nt dx"]
) -> Float[Array, "2 nt dy"]:
    """TNP-D as published: all tokens read all tokens, under a mask that hides the targets. O((nc + nt)²)."""
    z = model.embed(jnp.concatenate([context_features(xc, yc), target_features(xt, model.dy)]))
    x, mask = jnp.concatenate([xc, xt]), jnp.arange(len(xc) + len(xt)) < len(xc)
    z, _ = scan_blocks(lambda z, block: (block.update(z, x, block.memorise(z, x, mask)), None), z, model.stack)
    return _moments(model.likelihood(model.head(z[len(xc) :])))


def _moments(distribution):
    return jnp.stack([distribution.mean, distribution.variance])


def peak_gb() -> float:
    """Of the accelerator; on CPUs, resident memory of this process."""
    stats = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in stats:
        return stats["peak_bytes_in_use"] / 2**30
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def main() -> None:
    spec = json.loads(sys.argv[1])
    run = call(spec["row"], spec["nc"], spec["nt"])
    seconds: list[float] = []
    while not seconds or (sum(seconds) < ENOUGH and len(seconds) < 20):
        started = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "peak_gb": peak_gb()}), flush=True)


if __name__ == "__main__":
    main()
