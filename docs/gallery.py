"""The pictures of the gallery: what the plotting functions draw, with the shipped model.

    python docs/gallery.py [--anp WEIGHTS]

Writes `docs/gallery/*.png` and `docs/gallery.md`. `--anp`: weights of an attentive neural process trained on GP-1D,
as `npax bench gp1d --model anp` leaves them in its folder, for the attention maps.
"""

import argparse
import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from matplotlib.figure import Figure

import npax
from npax import plot
from npax.tasks import RBFPrior, gp_1d, gp_2d

FOLDER = Path(__file__).parent / "gallery"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anp", type=Path, help="weights of an attentive neural process trained on GP-1D")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    pages = {samples: (), field: (), search: ()}
    if options.anp is not None:
        pages[attention] = (npax.load(options.anp),)
    text = "# Gallery\n\nWhat `npax.plot` draws; `python docs/gallery.py` makes these pictures.\n"
    for draw, arguments in pages.items():
        picture = FOLDER / f"{draw.__name__}.png"
        draw(*arguments).savefig(picture, dpi=110)
        text += f"\n{inspect.getdoc(draw)}\n\n![{draw.__name__}](gallery/{picture.name})\n"
        print(picture, flush=True)
    (FOLDER.parent / "gallery.md").write_text(text)


def samples() -> Figure:
    """A function of one variable seen at 8 and at 20 noisy points: mean, 95 % interval, joint samples, truth
    (`plot.posterior`, `plot.samples`)."""
    task = gp_1d(RBFPrior()).sample(jr.key(3))
    x, y = np.asarray(task.xc), np.asarray(task.yc)
    order = np.argsort(task.xt[:, 0])
    grid, truth = np.asarray(task.xt)[order], np.asarray(task.yt)[order, 0]
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2, sharey=True), (8, 20), strict=True):
        model = npax.NeuralProcessRegressor(random_state=0).fit(x[:n], y[:n, 0])
        mean, std = model.predict(grid, return_std=True, include_noise=False)
        plot.posterior(ax, grid, mean, std, truth=truth, context=(x[:n], y[:n]))
        drawn = model.sample_y(grid[::3], n_samples=6, random_state=0, include_noise=False)
        plot.samples(ax, grid[::3], drawn.T)
        ax.set(title=f"{n} observations", xlabel="x")
    return figure


def field() -> Figure:
    """A function of two variables seen at 100 noisy points (`plot.task_panels`)."""
    task = gp_2d().sample(jr.key(2))
    side = 16
    nodes = np.linspace(-2, 2, side)
    model = npax.NeuralProcessRegressor().fit(np.asarray(task.xc[:100]), np.asarray(task.yc[:100, 0]))
    grid = np.asarray(task.xt[128:])
    mean, std = model.predict(grid, return_std=True, include_noise=False)
    figure = Figure(figsize=(13, 3.9), layout="constrained")
    # The nodes run over the second coordinate first: rows of the picture are the second coordinate.
    on_grid = [np.asarray(a).reshape(side, side).T for a in (mean, std, task.yt[128:, 0])]
    plot.task_panels(figure.subplots(1, 4), nodes, nodes, *on_grid, (task.xc[:100], task.yc[:100, 0]))
    return figure


def search() -> Figure:
    """Bayesian optimisation of a function of one variable in 6 + 8 evaluations (`plot.search`)."""

    def forrester(x):
        return (6 * x - 2) ** 2 * np.sin(12 * x - 4)

    result = npax.bayesopt.minimize(lambda x: forrester(x[0]), [(0, 1)], n_init=6, n_iter=8, random_state=0)
    grid = np.linspace(0, 1, 200)
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for ax, n in zip(figure.subplots(1, 2), (6, len(result.func_vals)), strict=True):
        x, y = result.x_iters[:n], result.func_vals[:n]
        mean, std = npax.NeuralProcessRegressor().fit(x, y).predict(grid[:, None], return_std=True, include_noise=False)
        best = float(x[np.argmin(y), 0])
        plot.search(ax, grid, mean, std, forrester(grid), evaluations=(x, y), proposed=best)
        ax.set(title=f"after {n} evaluations", xlabel="x")
    return figure


def attention(model) -> Figure:
    """What each head of an attentive neural process reads of 30 context points (`plot.attention_matrix`)."""
    task = gp_1d(RBFPrior()).sample(jr.key(3))
    grid = jnp.linspace(-2.0, 2.0, 160)[:, None]
    weights = jax.jit(model.path.attention.weights)(task.xc[:30], grid)
    figure = Figure(figsize=(12, 5), layout="constrained")
    for head, ax in enumerate(figure.subplots(2, 4, sharex=True, sharey=True).flat):
        plot.attention_matrix(ax, grid, task.xc[:30], weights[head])
        ax.set(title=f"head {head + 1}")
        ax.label_outer()
    return figure


if __name__ == "__main__":
    main()
