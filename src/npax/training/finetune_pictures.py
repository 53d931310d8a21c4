"""Fine-tuning of a model of pictures on the pictures whose gaps it is to fill."""

import jax
import jax.numpy as jnp
import numpy as np

from ..arguments import whole_number
from ..arrays import floats
from ..inference import Standardiser
from ..models import GridConvCNP
from ..objectives import hidden_pixels_nll
from ..tasks import HiddenPixels, MovedGapsTask
from .held_out import Finetuned, fit_and_keep_best

VALIDATION = 16
"""Squares on which the model to keep is chosen."""
SIDE = 256
"""Of the squares that are trained on."""
DRAWS = 100
"""Of moved gaps, until one hides anything that is held out."""


def finetune_pictures(
    model: GridConvCNP,
    y: np.ndarray,
    *,
    steps: int = 100,
    batch_size: int = 1,
    learning_rate: float = 3e-4,
    seed: int = 0,
    progress: bool = True,
) -> Finetuned:
    """Trains a model of pictures on gaps that look like those of the pictures, and keeps the best on other gaps.

    The gaps themselves, mirrored and moved to where the pictures are seen, hide pixels, and the likelihood of what they
    hide is raised (`npax.tasks.MovedGapsTask`). Some pixels are held out, under gaps mirrored and moved as a whole:
    they are never seen in training. The model is scored on them every quarter of the way and the best is returned, so
    it is never worse there than the model that came.

    **Arguments:** `y [*pictures rows columns]`: one picture or several of one size, NaN or masked in the gaps.
    `batch_size`: squares of up to 256 pixels a side in each step. `seed`: of the gaps.

    **Cost:** a step takes about 0.6 s for each square on a CPU core. **Good values:** 50 to 200 steps.

    **Pitfalls:** one small picture teaches little, and what lies in the gaps may differ from what lies beside them: on
    the satellite's picture of `benchmarks/heaton.py` 100 steps of two squares gain on clear pixels that are hidden
    (CRPS 0.742 to 0.741; RMSE loses as little) and lose under the clouds themselves (0.82 to 0.94).

    **Raises:** `ValueError` where there are no gaps, or nothing but gaps, or a picture is smaller than 16 pixels.
    """
    if not isinstance(model, GridConvCNP):
        raise TypeError(f"`model` must be one of pictures, a `GridConvCNP`; got {type(model).__name__}.")
    y = floats(y)
    if y.ndim < 2 or min(y.shape[-2:]) < 16:
        raise ValueError(f"`y` must be pictures of at least 16 x 16 pixels, [*pictures rows columns]; got {y.shape}.")
    whole_number(1, steps=steps, batch_size=batch_size)
    whole_number(0, seed=seed)
    y = y.reshape(-1, *y.shape[-2:])
    seen = np.isfinite(y)
    if seen.all() or not seen.any():
        raise ValueError(f"`y` must be seen in some pixels and not in others; {np.mean(seen):.0%} are.")
    y = np.stack([_standard(picture, mask) for picture, mask in zip(y, seen, strict=True)])[..., None]
    rng, side = np.random.default_rng(seed), min(SIDE, *seen.shape[1:])
    held_out = np.stack([_held_out(rng, mask) for mask in seen])
    pictures = jnp.asarray(y, jnp.float32)
    tasks = MovedGapsTask(pictures, jnp.asarray(seen & ~held_out), side)
    validation = _squares(rng, side, pictures, seen & ~held_out, held_out)
    chunk = min(5, max(1, -(-steps // 4)))
    every = -(-steps // (4 * chunk)) * chunk  # `fit` scores between chunks
    return fit_and_keep_best(
        model,
        tasks,
        validation,
        hidden_pixels_nll,
        steps=steps,
        every=every,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        together=None,
        chunk=chunk,
        progress=progress,
    )


def _standard(picture, mask):
    """The picture in the unit of the model, zeros in the gaps."""
    if not mask.any():
        return np.zeros(picture.shape)
    return np.where(mask, Standardiser.of(picture[mask][:, None])(picture[..., None])[..., 0], 0.0)


def _held_out(rng, mask):
    """What is seen of a picture and lies under its gaps, moved; of some draws the first that hides anything."""
    draws = (_moved(rng, ~mask) & mask for _ in range(DRAWS))
    return next(filter(np.any, draws), np.zeros_like(mask))


def _moved(rng, gaps):
    """The gaps, mirrored and moved round the torus, in one half of the picture."""
    moved = np.roll(gaps[:: rng.choice([1, -1]), :: rng.choice([1, -1])], rng.integers(gaps.shape), (0, 1))
    rows, columns = gaps.shape
    half = np.zeros_like(gaps)
    start = rng.integers(2)
    if rows > columns:
        half[start * rows // 2 :][: rows // 2] = True
    else:
        half[:, start * columns // 2 :][:, : columns // 2] = True
    return moved & half


def _squares(rng, side, y, mask, wanted):
    """Squares around random pixels that are `wanted`."""
    pixels = np.argwhere(wanted)
    if not len(pixels):
        raise ValueError("The gaps of `y`, moved, hide nothing that is seen: there is nothing to train on.")
    cuts = []
    for picture, *middle in pixels[rng.integers(len(pixels), size=VALIDATION)]:
        start = [min(max(m - side // 2, 0), n - side) for m, n in zip(middle, mask.shape[1:], strict=True)]
        cut = (picture, *(slice(a, a + side) for a in start))
        cuts.append(HiddenPixels(y[cut], jnp.asarray(mask[cut]), jnp.asarray(wanted[cut])))
    return jax.tree.map(lambda *parts: jnp.stack(parts), *cuts)
