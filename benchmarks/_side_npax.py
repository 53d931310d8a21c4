"""The npax side of `dl4bi_side_by_side.py`: `python _side_npax.py '{"case": "train", "variant": "tisa", ...}'`."""

import json
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from _worker import best, parameters, serve
from jax.sharding import NamedSharding, PartitionSpec as P

import npax
from npax.bias import GeometricRBFBias, RBFNetworkBias
from npax.devices import AXIS, everywhere, global_mesh, local_mesh, one_device_per_core, split
from npax.models import presets
from npax.tasks import RBFPrior, Stage, gp_1d
from npax.training.program import Chunk, run as steps, start

TRAINED = {"tisa": presets.tnp_kr_sa, "rotary + geometric": presets.tnp_kr_sa_rotary}
PREDICTING = {
    "tisa": lambda dx, dy, *, key: npax.TNPKR(
        dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), locations=False, key=key
    ),
    "geometric": lambda dx, dy, *, key: npax.TNPKR(
        dx, dy, bias=lambda key: GeometricRBFBias(4, key=key), locations=False, key=key
    ),
    "rotary + geometric": presets.tnp_kr_sa_rotary,
}


def train(spec):
    """The chunk of steps that `npax.fit` runs on GP-1D RBF, tasks drawn in the step; the optimiser of the paper, each
    core a device as in `npax train`."""
    one_device_per_core()
    model, stage = _preset(spec["variant"]), Stage(gp_1d(RBFPrior()), spec["batch"])
    optimizer = npax.training.yogi(100_000)
    state = [everywhere(start(lambda key: model(1, 1, key=key), optimizer, 1, jr.key(0), True), global_mesh())]
    objective = npax.objectives.suited(state[0].model)

    def run():
        state[0], losses = steps(
            Chunk(state[0], jr.key(0), stage, spec["steps"], objective, optimizer, 1, global_mesh())
        )
        return losses

    return run, parameters(eqx.filter(state[0].model, eqx.is_inexact_array))


def predict(spec):
    """Condition on `nc` points of the plane and predict at `nt` others, in one call."""
    model = PREDICTING[spec["variant"]](2, 1, key=jr.key(0))
    xc, xt = (jr.uniform(jr.key(i), (n, 2), minval=-2.0, maxval=2.0) for i, n in enumerate((spec["nc"], spec["nt"])))
    yc, mask = jnp.sin(3 * xc[:, :1]), jnp.ones(spec["nc"], bool)
    call = eqx.filter_jit(lambda model, xc, yc, xt, mask: model(xc, yc, xt, mask).mean)
    return lambda: call(model, xc, yc, xt, mask), parameters(eqx.filter(model, eqx.is_inexact_array))


def tasks(spec):
    """Predictions for a batch of tasks of GP-1D, 50 context slots and 150 targets each; each core a device with its
    share of the batch, as in `train`."""
    one_device_per_core()
    mesh = local_mesh()
    model = everywhere(_preset(spec["variant"])(1, 1, key=jr.key(0)), mesh)
    batch = jax.jit(jax.vmap(gp_1d(RBFPrior()).sample))(jr.split(jr.key(0), spec["batch"]))
    batch = jax.device_put(batch, NamedSharding(mesh, P(AXIS)))

    @eqx.filter_vmap(in_axes=(None, 0))
    def predict(model, task):
        return model(task.xc, task.yc, task.xt, task.mask_c).mean

    call = eqx.filter_jit(split(predict, mesh))
    return lambda: call(model, batch), parameters(eqx.filter(model, eqx.is_inexact_array))


def _preset(variant):
    return TRAINED.get(variant) or getattr(presets, variant)


def ceilings():
    """What the machine does at best: GFLOP/s of a float32 matmul, G exp/s, GB/s of a copy."""
    a, row = jnp.ones((2048, 2048)), jnp.linspace(-5.0, 0.0, 1 << 24)
    size = row.size * 4 / 1e9
    return {
        "matmul_gflops": 2 * 2048**3 / 1e9 / best(jax.jit(jnp.matmul), a, a),
        "exp_g_per_s": row.size / 1e9 / best(jax.jit(lambda x: jnp.sum(jnp.exp(x))), row),
        "copy_gb_per_s": 2 * size / best(jax.jit(lambda x: x + 1), row),
    }


if __name__ == "__main__":
    spec = json.loads(sys.argv[1])
    if spec["case"] == "ceilings":
        print(json.dumps(ceilings()))
    else:
        run, size = {"train": train, "predict": predict, "tasks": tasks}[spec["case"]](spec)
        serve(run, {"parameters": size, "optax": optax.__version__}, spec["steps"])
