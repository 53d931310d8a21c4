from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from ..arrays import floats
from ._grid import TITLES, checked_axes

STATES = {"susceptible": "#3b6fb6", "infected": "#c2419a", "recovered": "#4da05f"}
UNSEEN = "#f1f1ee"


def epidemic_panels(
    axes: Sequence[Axes] | np.ndarray, context: ArrayLike, probabilities: ArrayLike, truth: ArrayLike
) -> list[Patch]:
    """An epidemic on a lattice in the four panels of KR2's Figure 2: the cells seen, the entropy of the prediction
    (bright: uncertain), the prediction (colours mixed by probability), the truth.

    Blue: susceptible; magenta: infected; green: recovered; pale: not seen. Returns the handles that a legend wants.

    **Shapes:** `axes`: four of them; `context [rows columns]`: 0, 1, 2, and -1 where a cell is not seen;
    `probabilities [rows columns 3]`; `truth [rows columns]`.
    """
    axes = checked_axes(axes, 4)
    context, truth, p = np.asarray(context), np.asarray(truth), floats(probabilities)
    if p.shape != (*context.shape, 3) or context.ndim != 2 or truth.shape != context.shape:
        raise ValueError(
            "`context` and `truth` must be [rows, columns] and `probabilities` [rows, columns, 3], "
            f"got {context.shape}, {truth.shape} and {p.shape}."
        )
    for name, states in {"context": context, "truth": truth}.items():
        if not np.isin(states, range(-1, 3)).all():
            raise ValueError(f"`{name}` must hold 0, 1, 2 and -1, got {states[~np.isin(states, range(-1, 3))][0]}.")
    context, truth = context.astype(int), truth.astype(int)
    colours = np.array([to_rgb(colour) for colour in (*STATES.values(), UNSEEN)])
    entropy = -np.sum(np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0), axis=-1)
    axes[0].imshow(colours[context], interpolation="nearest")
    axes[1].imshow(entropy, cmap="magma", vmin=0, vmax=np.log(3), interpolation="nearest")
    axes[2].imshow(np.clip(p @ colours[:3], 0, 1), interpolation="nearest")
    axes[3].imshow(colours[truth], interpolation="nearest")
    for ax, title in zip(axes, TITLES, strict=True):
        ax.set(title=title, xticks=[], yticks=[])
    return [Patch(color=colour, label=name) for name, colour in STATES.items()]
