"""The dl4bi side of the comparisons, by its public interface, in the peer's own interpreter."""

import json
import sys
import time
from importlib.metadata import version

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
from _worker import parameters, serve
from dl4bi import meta_learning
from dl4bi.core.attention import (
    Attention,
    BiasedScanAttention,
    DeepKernelAttention,
    FastAttention,
    MultiHeadAttention,
)
from dl4bi.core.bias import Bias
from dl4bi.core.mlp import MLP
from dl4bi.core.train import TrainState
from dl4bi.core.transformer import KRBlock
from dl4bi.meta_learning import BSATNP, BTNP
from dl4bi.meta_learning.data.spatial import SpatialBatch


def block(attention, variant):
    """As shipped (heads of 16 channels), or with the heads of the npax presets (32)."""
    if variant == "as shipped":
        return KRBlock(MultiHeadAttention(attention))
    widths = {f"proj_{part}s": MLP([128]) for part in "qkv"}
    return KRBlock(MultiHeadAttention(attention, **widths, proj_out=MLP([64])))


def train(spec):
    """Steps of batch 32 on GP-1D RBF, tasks drawn in the step; the optimiser of the paper."""
    steps, carry, size = _training(spec, 100_000)
    count = iter(range(10**9))

    def run():
        carry[0], losses = steps(carry[0], jr.key(next(count)))
        return losses

    return run, size


def learn(spec):
    """NLL on the tasks in the file `tasks`, `[tasks]`, after `total` steps of training, and the seconds these took."""
    if spec["total"] % spec["steps"]:
        raise ValueError(f"The number of training steps must be a multiple of {spec['steps']}, got {spec['total']}.")
    steps, carry, size = _training(spec, spec["total"])
    started = time.monotonic()
    for i in range(spec["total"] // spec["steps"]):
        carry[0], _ = steps(carry[0], jr.key(i))
    jax.block_until_ready(carry[0])
    seconds = time.monotonic() - started
    state = carry[0]

    @jax.jit
    def nll(batch):
        inputs = {name: batch[name] for name in ("s_ctx", "f_ctx", "mask_ctx", "s_test")}
        found = state.apply_fn({"params": state.params, **state.kwargs}, **inputs, rngs={"extra": jr.key(1)})
        return -jax.scipy.stats.norm.logpdf(batch["f_test"], found.mu, found.std).mean(axis=(1, 2))

    known = np.load(spec["tasks"])
    parts = [{name: known[name][i : i + 32] for name in known.files} for i in range(0, len(known["f_test"]), 32)]
    values = np.concatenate([nll(part) for part in parts])
    print(json.dumps({"nll": values.tolist(), "parameters": size, "seconds": seconds, "dl4bi": version("dl4bi")}))


def _training(spec, horizon):
    """A function of state and key that takes some steps, a list that holds the first state, and the model's size."""
    model = _model(spec)
    optimizer = optax.chain(optax.clip_by_global_norm(3.0), optax.yogi(optax.cosine_decay_schedule(1e-3, horizon)))
    batch = gp_1d(jr.key(0), spec["batch"])
    inputs = {name: batch[name] for name in ("s_ctx", "f_ctx", "mask_ctx", "s_test")}
    variables = jax.jit(lambda key: model.init({"params": key, "extra": key}, **inputs))(jr.key(0))
    params, rest = variables["params"], {name: a for name, a in variables.items() if name != "params"}
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optimizer, kwargs=rest)

    def step(state, key):
        tasks_key, step_key = jr.split(key)
        batch = SpatialBatch(**gp_1d(tasks_key, spec["batch"]))
        return model.train_step(step_key, state, batch)

    # Its own loop calls one jitted step after another; a scan over steps is kinder to it.
    steps = jax.jit(lambda state, key: jax.lax.scan(step, state, jr.split(key, spec["steps"])))
    return steps, [state], parameters(params)


def tasks(spec):
    """Predictions for a batch of tasks of GP-1D, 50 context slots and 150 targets each."""
    model, batch = _model(spec), gp_1d(jr.key(0), spec["batch"])
    inputs = {name: batch[name] for name in ("s_ctx", "f_ctx", "mask_ctx", "s_test")}
    keys = {"params": jr.key(0), "extra": jr.key(0)}
    params = jax.jit(lambda: model.init(keys, **inputs))()
    call = jax.jit(lambda params, inputs: model.apply(params, **inputs, rngs={"extra": jr.key(1)}))
    return lambda: call(params, inputs), parameters(params)


def _model(spec):
    """BTNP with a TISA bias, one of `LINEAR`, or any other: as it is shipped or, if in `WIDER`, as large as ours."""
    name = spec.get("model", "BTNP")
    if name == "BTNP":
        return BTNP(s_sim=distance, s_bias=Bias.build_tisa_bias(), blk=block(Attention(), spec["variant"]))
    if name in LINEAR:
        return BSATNP(embed_s=lambda s: s, blk=LINEAR[name]())
    parts = WIDER[name]() if spec["variant"] == "same widths" and name in WIDER else {}
    if spec["case"] == "tasks" and name in ("NP", "ANP"):
        parts["n_z"] = 16  # the draws of a prediction of ours
    return getattr(meta_learning, name)(**parts)


LINEAR = {
    "BSATNP, PERF": lambda: block(FastAttention(), "same widths"),
    "BSATNP, DKA": lambda: KRBlock(DeepKernelAttention(4, proj_qks=MLP([128, 128]), proj_vs=MLP([128, 64]))),
}
"""Attention of linear cost: 64 random features in heads of 32 channels, a deep kernel of 128 features."""


def attention(width):
    widths = {f"proj_{part}s": MLP([width]) for part in "qkv"}
    return MultiHeadAttention(Attention(), num_heads=8, **widths, proj_out=MLP([width]))


WIDER = {
    "CNP": lambda: {"enc_det": MLP([256] * 4), "dec": MLP([256] * 4 + [2])},
    "NP": lambda: {
        "enc_det": MLP([192] * 4),
        "enc_lat": MLP([192] * 4),
        "z_dist": MLP([192, 128]),
        "dec": MLP([192] * 4 + [2]),
    },
    "CANP": lambda: {
        "embed_s": MLP([176] * 2),
        "enc_det": MLP([176] * 3),
        "self_attn_det": attention(176),
        "cross_attn": attention(176),
        "dec": MLP([176] * 4 + [2]),
    },
}
"""Networks as wide as ours or, where those differ in their parts, for about as many parameters."""


def predict(spec):
    """Condition on `nc` points of the plane and predict at `nt` others, in one call."""
    attention = BiasedScanAttention({"s": Bias.build_tisa_bias()})
    model = BSATNP(blk=block(attention, spec["variant"]))
    xc, xt = (jr.uniform(jr.key(i), (1, n, 2), minval=-2.0, maxval=2.0) for i, n in enumerate((spec["nc"], spec["nt"])))
    inputs = {"s_ctx": xc, "f_ctx": jnp.sin(3 * xc[..., :1]), "mask_ctx": jnp.ones((1, spec["nc"]), bool), "s_test": xt}
    small = jax.tree.map(lambda a: a[:, :8], inputs)
    params = jax.jit(lambda key: model.init({"params": key, "extra": key}, **small))(jr.key(0))
    call = jax.jit(lambda params, inputs: model.apply(params, **inputs).mu)
    return lambda: call(params, inputs), parameters(params)


def distance(a, b):
    r2 = jnp.sum(jnp.square(a[..., :, None, :] - b[..., None, :, :]), axis=-1)
    return jnp.sqrt(jnp.where(r2 > 0, r2, 1.0)) * (r2 > 0)


def gp_1d(key, batch):
    """The same distribution over tasks as `npax.tasks.gp_1d(RBFPrior())`, as the peer's batch."""

    def one(key):
        place, size, scale, values, noise = jr.split(key, 5)
        free = jr.uniform(place, (50, 1), minval=-2.0, maxval=2.0)
        x = jnp.concatenate([free, jnp.linspace(-2.0, 2.0, 100)[:, None]])
        e = jr.exponential(scale, (10,))
        length = jnp.sum(e[:3]) / jnp.sum(e)
        k = jnp.exp(-jnp.square(x - x.T) / (2 * jnp.square(length)))
        f = jnp.linalg.cholesky(k + 2e-5 * jnp.eye(150)) @ jr.normal(values, (150, 1))
        yc = f[:50] + 0.1 * jr.normal(noise, (50, 1))
        return free, yc, jnp.arange(50) < jr.randint(size, (), 3, 51), x, f

    s_ctx, f_ctx, mask_ctx, s_test, f_test = jax.vmap(one)(jr.split(key, batch))
    filled = {"s_ctx": s_ctx, "f_ctx": f_ctx, "mask_ctx": mask_ctx, "s_test": s_test, "f_test": f_test}
    unused = {"x_ctx": None, "x_test": None, "mask_test": jnp.ones(f_test.shape[:2], bool)}
    return {**filled, **unused, "inv_permute_idx": jnp.arange(150), "s_shape": (150,)}


if __name__ == "__main__":
    spec = json.loads(sys.argv[1])
    if spec["case"] == "learn":
        sys.exit(learn(spec))
    run, size = {"train": train, "predict": predict, "tasks": tasks}[spec["case"]](spec)
    serve(run, {"parameters": size, "dl4bi": version("dl4bi"), "flax": version("flax")}, spec["steps"])
