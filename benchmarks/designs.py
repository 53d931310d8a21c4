"""Where observations lie, and whether the shipped model knows how noisy they are: on lines, lattices and at random.

    python benchmarks/designs.py

On even designs no two observations are close, so that noise must be told from what varies quickly by the course of the
whole. Matern 3/2 fields of variance 1 on the unit interval, square and cube, length scale and standard deviation of the
noise as given; targets are new noisy observations at uniform places, unless it says otherwise. Beside
`NeuralProcessRegressor`: the Gaussian process that knows kernel and noise, the best possible. Writes
`results/designs.md` and `.json`.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32

import npax
from npax.metrics import score_report

TARGETS = 200


def anywhere(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return rng.uniform(size=(TARGETS, x.shape[1]))


def at_observations(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    return x[rng.integers(len(x), size=TARGETS)]


class Design(NamedTuple):
    """`draw(rng) -> [n d]`, in the unit cube; `fields`: length scales and standard deviations of the noise; `targets`:
    where it is asked, `(rng, x) -> [TARGETS d]`; `columns`: how many of them the field depends on, the first ones;
    `include_noise`: whether new observations are asked for, or the noiseless field."""

    name: str
    draw: Callable[[np.random.Generator], np.ndarray]
    fields: Sequence[tuple[float, float]]
    targets: Callable[[np.random.Generator, np.ndarray], np.ndarray] = anywhere
    columns: int | None = None
    include_noise: bool = True


ONE = ((0.3, 0.3),)
SEVERAL = (*ONE, (0.3, 1.0), (1.0, 0.3), (0.3, 0.1))
RADIUS = 0.25


def lattice(*sides: int) -> np.ndarray:
    axes = [np.linspace(0, 1, side) for side in sides]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(sides))


def even(*sides: int, fields=ONE) -> Design:
    return Design(f"even, {' x '.join(map(str, sides))}", lambda rng: lattice(*sides), fields)


def with_gaps(*sides: int, fields=ONE) -> Design:
    nodes = lattice(*sides)
    kept = round(0.7 * len(nodes))
    name = f"even, {' x '.join(map(str, sides))}, 30 % missing"
    return Design(name, lambda rng: nodes[rng.permutation(len(nodes))[:kept]], fields)


def at_random(n: int, d: int, fields=ONE) -> Design:
    return Design(f"at random, {n} in {d}-D", lambda rng: rng.uniform(size=(n, d)), fields)


def there(n: int, d: int) -> Design:
    """Asked for new observations at the very places of the first."""
    design = at_random(n, d, fields=((0.5, 0.3), (0.5, 1.0)))
    return design._replace(name=f"{design.name}, asked there", targets=at_observations)


def noiseless(n: int, d: int) -> Design:
    """Asked for the field that is observed with noise."""
    design = at_random(n, d, fields=((0.5, 0.1), (0.5, 0.3), (0.5, 1.0)))
    return design._replace(name=f"{design.name}, the field itself", include_noise=False)


def with_idle_column(n: int, d: int) -> Design:
    name = f"at random, {n} in {d}-D and a column without effect"
    return at_random(n, d + 1)._replace(name=name, columns=d)


def clusters(n: int, d: int) -> Design:
    def draw(rng):
        return rng.uniform(size=(6, d))[rng.integers(6, size=n)] + 0.03 * rng.normal(size=(n, d))

    return Design(f"6 clusters, {n:,} in {d}-D", draw, ((0.3, 0.1), (1.0, 0.1)))


def around_a_hole(n: int, d: int) -> Design:
    def inside(x):
        return np.linalg.norm(x - 0.5, axis=1) < RADIUS

    def draw(rng):
        x = rng.uniform(size=(4 * n, d))
        return x[~inside(x)][:n]

    def targets(rng, x):
        xt = rng.uniform(0.5 - RADIUS, 0.5 + RADIUS, (20 * TARGETS, d))
        return xt[inside(xt)][:TARGETS]

    return Design(f"around a hole, {n:,} in {d}-D, asked within", draw, ((0.3, 0.1), (1.0, 0.1)), targets)


DESIGNS = (
    even(12),
    even(20),
    even(40, fields=SEVERAL),
    *(even(n) for n in (80, 150, 300)),
    with_gaps(56),
    at_random(40, 1, fields=SEVERAL),
    even(8, 8),
    even(12, 12, fields=SEVERAL),
    even(20, 20),
    even(6, 24),
    with_gaps(12, 12, fields=SEVERAL),
    at_random(144, 2),
    even(5, 5, 5),
    at_random(125, 3),
    there(40, 1),
    there(60, 2),
    there(200, 2),
    noiseless(100, 1),
    noiseless(300, 2),
    at_random(20, 1, fields=((0.5, 0.01),)),
    at_random(150, 2, fields=((0.3, 0.3), (0.5, 0.01))),
    with_idle_column(150, 2),
    clusters(2000, 2),
    clusters(2000, 3),
    around_a_hole(2000, 2),
)


def main() -> None:
    options = options_of(__doc__)
    rows = []
    for design in DESIGNS:
        for scale, noise in design.fields:
            scores = np.array([score(options.model, design, scale, noise, seed) for seed in range(options.fields)])
            rows.append({"design": design.name, "scale": scale, "noise": noise, **summary(scores)})
            print(rows[-1], flush=True)
            about = {**circumstances(), "model": options.model, "fields": options.fields}
            write_json("designs", {**about, "rows": rows})
            write_markdown("designs", "Where observations lie", _text(rows), about)


def score(model: str, design: Design, scale: float, noise: float, seed: int) -> list[list[float]]:
    """CRPS, coverage of 95 % intervals and RMSE of the network and of the process that knows."""
    rng = np.random.default_rng(seed)
    x = design.draw(rng)
    xt = design.targets(rng, x)
    k = matern32(np.concatenate([x, xt])[:, : design.columns], scale)
    function = draw(rng, k)
    y = function + noise * rng.normal(size=len(k))
    n = len(x)
    best = best_answer(k, y[:n], noise, design.include_noise)
    reg = npax.NeuralProcessRegressor(model).fit(x, y[:n])
    ours = reg.predict(xt, return_std=True, include_noise=design.include_noise)
    truth = y[n:] if design.include_noise else function[n:]
    reports = (score_report(truth, *found) for found in (ours, best))
    return [[report[name] for name in ("crps", "coverage", "rmse")] for report in reports]


def summary(scores: np.ndarray) -> dict[str, float]:
    """Means of `[fields predictors scores]`, and the standard error of how much CRPS is lost."""
    (_, coverage, rmse), (_, best_coverage, best_rmse) = scores.mean(axis=0).tolist()
    above = scores[:, 0, 0] / scores[:, 1, 0] - 1
    found = {"coverage": coverage, "best_coverage": best_coverage, "rmse": rmse, "best_rmse": best_rmse}
    return {**found, "above": above.mean().item(), "above_error": above.std(ddof=1).item() / len(above) ** 0.5}


def _text(rows) -> str:
    header = ["observations", "length scale", "noise", "coverage", "of the best", "CRPS above the best", "RMSE", "best"]
    cells = []
    for row in rows:
        cells.append([row["design"], f"{row['scale']:g}", f"{row['noise']:g}"])
        cells[-1] += [f"{row['coverage']:.1%}", f"{row['best_coverage']:.1%}"]
        cells[-1] += [f"{row['above']:.1%} ± {row['above_error']:.1%}", f"{row['rmse']:.3f}", f"{row['best_rmse']:.3f}"]
    return (
        "Without training. Coverage of 95 % intervals of new observations; the best: the Gaussian process that knows "
        "kernel and noise. Means over fields, ± standard error.\n\n" + table(header, cells)
    )


def options_of(description: str | None) -> argparse.Namespace:
    """The model and the number of fields of a command."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gp-universal", help="a pretrained model's name, or a path of weights")
    parser.add_argument("--fields", type=int, default=30)
    return parser.parse_args()


if __name__ == "__main__":
    main()
