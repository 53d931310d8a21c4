"""Trains and predicts on all the devices there are, and saves what it found.

`crew.py FOLDER`: in one process; `crew.py FOLDER distributed`: as one of several, started as a launcher would.
"""

import signal
import sys
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.random as jr
import numpy as np
from sines import Sines, train

import npax
from npax.inference import Exact, Tiled, predict
from npax.tasks import Curriculum, Stage


def weights(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_array))])


def stopped(folder):
    """Halfway through a training, its own Ctrl-C; what `evaluate` saw until then."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs start with Ctrl-C ignored
    seen = []

    def evaluate(model):
        seen.append(float(np.sum(weights(model))))
        if len(seen) == 6:
            signal.raise_signal(signal.SIGINT)

    try:
        train(checkpoint=folder, evaluate=evaluate, evaluate_every=2, progress=True)
    except KeyboardInterrupt:
        return seen


def trained(**options):
    result = train(**options)
    return {"losses": result.losses, "weights": weights(result.model), "skipped": result.skipped}


def uneven(key=3):
    """Two seeds side by side, on batches that do not divide by four, and tasks some of which are broken."""
    curriculum = Curriculum((Stage(Sines(), 6), Stage(Sines(broken=0.1), 3)))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* steps were skipped", RuntimeWarning)
        return trained(steps=12, tasks=curriculum, seeds=2, key=jr.key(key))


def predicted():
    """In tiles, on all devices and on one; and in one piece, more targets than a chunk holds."""
    rng = np.random.default_rng(0)
    sizes = {"blocks": 1, "size": 16, "heads": 1, "head_size": 8, "hidden": 16}
    model = eqx.filter_jit(lambda key: npax.TNPKR(1, 1, **sizes, key=key))(jr.key(0))
    x, xt = rng.uniform(-2, 2, (60, 1)), rng.uniform(-2, 2, (1500, 1))
    tiled = Tiled(model, x, np.sin(x), size=20)
    exact, decode, used = Exact(model, x, np.sin(x)), predict._decode, set()

    def watched(*args):
        out = decode(*args)
        used.update(out.devices())
        return out

    predict._decode = watched
    with jax.default_device(jax.devices()[-1]):
        found = {"named": tiled(xt), "named exact": exact(xt)}
    assert used == {jax.devices()[-1]}  # also in the threads of several chunks
    found |= {"tiled": tiled(xt), "exact": exact(xt)}
    return {name: np.stack(moments) for name, moments in found.items()}


def refused(folder):
    """What each process raises where a checkpoint, which only the first has, is of another run."""
    try:
        train(checkpoint=folder, key=jr.key(9))
    except Exception as error:
        return type(error).__name__


def everything(folder):
    """What the test compares: the same on any devices."""
    seen = stopped(folder)
    found = {"stopped": {"seen": seen, "files": len(list(folder.glob("*")))}}
    found["resumed"] = trained(checkpoint=folder, devices=jax.devices()[-3:])
    if jax.process_count() > 1:
        return {**found, "refused": {"error": refused(folder)}}
    return found | {"uneven": uneven(), "predicted": predicted()}


def save(path, found):
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **{f"{name} {part}": a for name, parts in found.items() for part, a in parts.items()})


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        jax.distributed.initialize()
        folder /= str(jax.process_index())  # each its own: nothing passes through files
    save(folder / "found.npz", everything(folder / "checkpoint"))
