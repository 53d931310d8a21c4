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
from ..inference import Tiled
from ..models import TNPD, AbstractNeuralProcess, presets
from ..models._base import context_features, target_features
from ..serialise import load
from .speed import TILED

CHUNK = 4096
"""Targets decoded at a time."""
ENOUGH = 1.0
"""Seconds of calls; one call at least, twenty at most."""


def call(row: str, nc: int, nt: int) -> Callable[[], object]:
    """A prediction of one task, compiled: moments at `nt` places of the plane from `nc` observations."""
    rng = np.random.default_rng(0)
    xc, xt = (rng.uniform(-2, 2, (n, 2)).astype(np.float32) for n in (nc, nt))
    yc = np.sin(3 * xc[:, :1])
    if row == TILED:
        tiled = Tiled(load("gp-universal"), xc.astype(float), yc.astype(float))
        places = xt.astype(float)
        corner = np.argsort(np.abs(places + 2).max(axis=1))[:CHUNK]
        tiled(places[corner])  # compiles: as dense as all of them
        return lambda: tiled(places)
    if row == "tnp_d_masked":
        model = TNPD(2, 1, attention=DenseAttention(), key=jr.key(0))
        function = masked
    else:
        model, function = getattr(presets, row)(2, 1, key=jr.key(0)), chunked
    arguments = (model, jnp.asarray(xc), jnp.asarray(yc), jnp.asarray(xt))
    program: Any = eqx.filter_jit(function)
    compiled = program.lower(*arguments).compile()
    return lambda: compiled(*arguments)


def masked(
    model: TNPD, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], xt: Float[Array, "nt dx"]
) -> Float[Array, "2 nt dy"]:
    """TNP-D as published: all tokens read all tokens, under a mask that hides the targets. O((nc + nt)²)."""
    z = model.embed(jnp.concatenate([context_features(xc, yc), target_features(xt, model.dy)]))
    x, mask = jnp.concatenate([xc, xt]), jnp.arange(len(xc) + len(xt)) < len(xc)
    z, _ = scan_blocks(lambda z, block: (block.update(z, x, block.memorise(z, x, mask)), None), z, model.stack)
    return _moments(model.likelihood(model.head(z[len(xc) :])))


def chunked(
    model: AbstractNeuralProcess, xc: Float[Array, "nc dx"], yc: Float[Array, "nc dy"], xt: Float[Array, "nt dx"]
) -> Float[Array, "2 nt dy"]:
    """Conditions once, then decodes chunk by chunk, so that memory does not grow with the targets."""
    state, nt = model.condition(xc, yc), len(xt)
    size = min(CHUNK, nt)
    chunks = jnp.pad(xt, ((0, -nt % size), (0, 0))).reshape(-1, size, xt.shape[1])
    found = jax.lax.map(lambda x: _moments(model.predict(state, x)), chunks)
    return jnp.moveaxis(found, 1, 0).reshape(2, -1, found.shape[-1])[:, :nt]


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
