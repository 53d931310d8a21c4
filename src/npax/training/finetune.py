"""Fine-tuning: a pretrained model adapts to one data set before it fills the gaps of it."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..arguments import instance, whole_number
from ..arrays import floats, refuse_datetimes
from ..inference import Tiled, coordinates
from ..inference.predict import observations, to_model
from ..models import AbstractNeuralProcess
from ..objectives import nll
from ..task import Task
from ..tasks import ArrayTask
from .gaps import AbstractGaps, RoundGaps
from .held_out import Finetuned, fit_and_keep_best

VIEWS = 12
"""Sets of gaps cut for training."""
VALIDATION = 256
"""Tasks on which the model to keep is chosen."""


def finetune(
    model: AbstractNeuralProcess,
    x: np.ndarray,
    y: np.ndarray,
    *,
    steps: int = 200,
    gaps: AbstractGaps | None = None,
    coords: str = "planar",
    normalize: bool = True,
    size: int = 128,
    targets: int = 32,
    batch_size: int = 16,
    learning_rate: float = 3e-4,
    seed: int = 0,
    progress: bool = True,
) -> Finetuned:
    """Trains a model on gaps cut into one data set, as `Tiled` would fill them, and keeps the best on other gaps.

    Observations are hidden, the tiles around them are conditioned on what is left, and the likelihood of the hidden
    ones is raised. Some gaps are held out: what they hide is never a target of training. The model is scored on them
    every eighth of the way and the best is returned, so it is never worse there than the model that came.

    **Arguments:** `x [n d]`, `y [n]` or `[n dy]`: the observations, finite. `steps`: of `batch_size` tiles each.
    `gaps`: how the gaps look (default `RoundGaps()`; `MovedGaps(at)` where their shape is known). `coords`,
    `normalize`: as for `NeuralProcessRegressor`. `size`: observations per tile, as later in prediction; `targets`:
    hidden ones per tile. `seed`: of the gaps and the order of the tasks. `learning_rate`: the highest, after a rise and
    before a fall. `progress`: whether a bar is shown.

    **Cost:** that of a training step on `batch_size (size + targets)` points, `steps` times.
    **Good values:** 100 to 500 steps. **Pitfalls:** gaps unlike those to be filled teach the wrong thing.

    **Raises:** `ValueError` for fewer than 4 `size` observations, values that are not finite, and gaps that hide none
    or all.
    """
    if not isinstance(model, AbstractNeuralProcess):
        raise TypeError(f"`model` must be a model, such as `npax.load({str(model)!r})`; got {type(model).__name__}.")
    whole_number(1, size=size)
    gaps = RoundGaps() if gaps is None else gaps
    instance(AbstractGaps, gaps=gaps)
    refuse_datetimes(y)
    y = floats(y)
    x, y = observations(x, y[:, None] if y.ndim == 1 else y)
    if len(x) < 4 * size:
        raise ValueError(
            f"Fine-tuning needs at least 4 times `size` observations, {4 * size:,}; got {len(x):,}. "
            "Predict without it, or choose a smaller `size` (of the estimators: `tile_size`)."
        )
    whole_number(1, steps=steps, targets=targets, batch_size=batch_size)
    whole_number(0, seed=seed)
    rng, system = np.random.default_rng(seed), coordinates(coords)
    cut = _Cutter(model, x, y, system, normalize, size, targets, rng)
    held_out = _draw(gaps, rng, system.positions(x), system)
    validation = cut(held_out, held_out, VALIDATION)
    views = []
    for _ in range(VIEWS):
        hidden = _draw(gaps, rng, system.positions(x), system)
        views.append(cut(hidden, hidden & ~held_out, -(-min(steps * batch_size, 6000) // VIEWS)))
    views = [view for view in views if view is not None]
    if validation is None or not views:
        raise ValueError("`gaps` always hide the same observations: none is left for training. Choose others.")

    every = -(-steps // 8)
    found = fit_and_keep_best(
        model,
        ArrayTask(_joined(views)),
        validation,
        nll,
        steps=steps,
        every=every,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        together=16,
        chunk=every,
        progress=progress,
    )
    return dataclasses.replace(found, held_out=held_out)


class _Cutter:
    """Makes tasks of tiles, of what is visible and hidden there."""

    def __init__(self, model, x, y, system, normalize, size, targets, rng):
        self.model, self.x, self.y, self.system, self.normalize = model, x, y, system, normalize
        self.size, self.targets, self.rng = size, targets, rng

    def __call__(self, hidden, wanted, number):
        """`number` tasks whose targets are `wanted`, in the tiles of the observations that are not `hidden`."""
        visible = self.x[~hidden], self.y[~hidden]
        tiled = Tiled(self.model, *visible, self.system, size=self.size, normalize=self.normalize)
        positions, y = self.system.positions(self.x[wanted]), tiled.left(self.x[wanted], self.y[wanted])
        cells = tiled.cells(positions) if len(positions) else []
        if not cells:
            return None
        likely = np.array([len(cell.targets) for cell in cells], float)
        chosen = [cells[i] for i in self.rng.choice(len(cells), number, p=likely / likely.sum())]
        index = np.stack([np.resize(self.rng.permutation(cell.targets), self.targets) for cell in chosen])
        counts = np.stack([np.arange(self.targets) < len(cell.targets) for cell in chosen])
        frame, contexts = tiled.around(np.stack([cell.middle for cell in chosen]))
        xt = to_model(self.model, frame(positions[index]))
        groups = np.split(y[index], len(contexts), axis=-1)
        parts = [
            Task(*(jnp.asarray(a) for a in (c.x, c.y, c.mask, xt, c.standardiser(values).astype(np.float32), counts)))
            for c, values in zip(contexts, groups, strict=True)
        ]
        return _joined(parts)


def _joined(tasks):
    """Several batches of tasks as one."""
    return jax.tree.map(lambda *parts: jnp.concatenate(parts), *tasks)


def _draw(gaps, rng, positions, system, attempts=100):
    for _ in range(attempts):
        hidden = gaps.draw(rng, positions, system)
        if 0 < hidden.sum() <= len(hidden) / 2:
            return hidden
    raise ValueError(
        f"`gaps` hide none of the observations, or more than half of them, {attempts} times in a row. "
        "Choose gaps that lie among the observations and leave most of them."
    )
