"""The pictures of the gallery: what the plotting functions draw, with the shipped model.

    python docs/gallery.py [--anp WEIGHTS] [--mnist WEIGHTS] [--sir WEIGHTS] [--kolmogorov WEIGHTS]
                           [--environment WEIGHTS] [--satellite FILE] [--temperature FILE] [--data DATA]
                           [--only NAME ...]

Writes `docs/gallery/*.png` and, with all its pictures, `docs/gallery.md`. The weights are what `npax bench` leaves in
its folder: `--anp`: of `npax bench gp1d --kernel matern32 --model anp`, for the attention maps; `--mnist`: of
`npax bench mnist`, for image completion, with the images of `--data` (or of the folder that NPAX_DATA names);
`--sir`: of `npax bench sir`; `--kolmogorov` and `--environment`: of those tables. `--satellite` and `--temperature` are
no weights but the data of `benchmarks/heaton.py`, and `era5_europe_2022_07.npz` (`npax.data.era5_europe`).
A picture whose weights are not given stays as it is.
"""

import argparse
import inspect
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from matplotlib.figure import Figure

import npax
from npax import plot
from npax.estimators import Extrapolation
from npax.tasks import Matern32Prior, RBFPrior, gp_1d, gp_2d

FOLDER = Path(__file__).parent / "gallery"
ELSEWHERE = {
    "../benchmarks/results/bo1d.png": """
Bayesian optimisation of functions of GP-1D with models trained for 4,000 steps: regret beside that of a Gaussian
process that knows the kernel, and the two worst searches of TNP-KR: SA (`plot.regret`, `plot.search`; `python
benchmarks/bo1d.py --plot` with trained weights).""",
}
"""Pictures that benchmarks draw, and what they show."""
NOT_HERE = """\
Without a picture here: `plot.world`, a map of the whole earth; `plot.mean_and_std`, a prediction and its standard
deviation side by side (the [README](../README.md)'s picture, of the whole earth; `npax predict --plot`);
`plot.scattered`, the same at points that make no grid; `plot.points`, values there; and `plot.regions`, averages of
regions with their intervals (`npax average --plot`)."""
"""What `gallery.md` says of other functions."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anp", type=Path, help="weights of an attentive neural process trained on GP-1D")
    parser.add_argument("--mnist", type=Path, help="weights of a model of MNIST")
    parser.add_argument("--sir", type=Path, help="weights of a model of SIR")
    parser.add_argument("--kolmogorov", type=Path, help="weights of a model of Kolmogorov flow")
    parser.add_argument("--environment", type=Path, help="weights of a model of air temperature")
    parser.add_argument("--satellite", type=Path, help="land surface temperature, as for benchmarks/heaton.py")
    parser.add_argument("--temperature", type=Path, help="ERA5 over Europe, as for npax.data.era5_europe")
    parser.add_argument("--data", type=Path, help="the folder that holds the data")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="draw these pictures only")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    weights = {
        attention: options.anp,
        digits: options.mnist,
        resolution: options.mnist,
        epidemic: options.sir,
        flow: options.kolmogorov,
        weather: options.environment,
        satellite: options.satellite,
        covariates: options.temperature,
    }
    reads = {satellite: np.load, covariates: npax.data.era5_europe}
    readers = {digits: npax.data.mnist, resolution: npax.data.mnist, weather: npax.data.era5_europe}
    text = f"# Gallery\n\nWhat `npax.plot` draws; `python docs/gallery.py` makes these pictures.\n\n{NOT_HERE}\n"
    for draw in (samples, field, prevalence, search, *weights):
        picture = FOLDER / f"{draw.__name__}.png"
        path, wanted = weights.get(draw), options.only is None or draw.__name__ in options.only
        if wanted and (path is not None or draw not in weights):
            arguments = () if path is None else (reads.get(draw, npax.load)(path),)
            more = (readers[draw](options.data),) if draw in readers else ()
            draw(*arguments, *more).savefig(picture, dpi=110)
            print(picture, flush=True)
        if picture.exists():
            text += f"\n{inspect.getdoc(draw)}\n\n![{draw.__name__}](gallery/{picture.name})\n"
    text += "".join(f"{about}\n\n![{Path(picture).stem}]({picture})\n" for picture, about in ELSEWHERE.items())
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


def prevalence() -> Figure:
    """A disease in 120 villages, where 10 to 100 people were tested: how many were positive, the prevalence that
    `npax.CountRegressor` finds, the truth, and the probability that more than a third are positive (`plot.field`)."""
    rng, counts = np.random.default_rng(0), npax.counts.Binomial()
    x, y = np.linspace(0, 10, 100), np.linspace(0, 6, 60)
    nodes = np.stack(np.meshgrid(x, y), axis=-1)

    def truth(at):
        return counts.rate(-1.5 + 1.5 * np.sin(0.9 * at[..., 0]) * np.cos(at[..., 1]) + 0.1 * at[..., 0])

    villages, tested = rng.uniform(0, [10, 6], (120, 2)), rng.integers(10, 101, 120)
    positive = rng.binomial(tested, truth(villages))
    reg = npax.CountRegressor(counts, npax.NeuralProcessRegressor(coords="isotropic"))
    reg.fit(villages, positive, exposure=tested)
    found = reg.predict(nodes.reshape(-1, 2), include_noise=False).reshape(nodes.shape[:2])
    above = reg.exceedance(nodes.reshape(-1, 2), 1 / 3, include_noise=False).reshape(nodes.shape[:2])
    figure = Figure(figsize=(15, 3.2), layout="constrained")
    axes = figure.subplots(1, 4)
    seen = axes[0].scatter(
        *villages.T, s=tested, c=positive / tested, cmap="RdYlBu_r", vmin=0, vmax=0.8, edgecolors="k"
    )
    axes[0].set(title="positive among those tested (size)", xlim=(0, 10), ylim=(0, 6), aspect="equal")
    for ax, (title, values) in zip(axes[1:3], {"prevalence": found, "truth": truth(nodes)}.items(), strict=True):
        plot.field(ax, x, y, values, cmap="RdYlBu_r", limits=(0.0, 0.8))
        ax.set(title=title)
    figure.colorbar(seen, ax=axes[:3], shrink=0.8)
    drawn = plot.field(axes[3], x, y, above, cmap="magma_r", limits=(0.0, 1.0))
    axes[3].set(title="probability of more than a third")
    figure.colorbar(drawn, ax=axes[3], shrink=0.8)
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
        model = npax.NeuralProcessRegressor().fit(x, y)
        with warnings.catch_warnings():  # the bounds are wider than the first evaluations
            warnings.simplefilter("ignore", Extrapolation)
            mean, std = model.predict(grid[:, None], return_std=True, include_noise=False)
        best = float(x[np.argmin(y), 0])
        plot.search(ax, grid, mean, std, forrester(grid), evaluations=(x, y), proposed=best)
        ax.set(title=f"after {n} evaluations", xlabel="x")
    return figure


def attention(model) -> Figure:
    """What each head of an ANP, trained on Matern 3/2 functions for 1,500 steps, reads of 30 context points
    (`plot.attention_matrix`)."""
    task = gp_1d(Matern32Prior()).sample(jr.key(3))
    grid = jnp.linspace(-2.0, 2.0, 160)[:, None]
    weights = eqx.filter_jit(model.path.attention.weights)(task.xc[:30], grid)
    figure = Figure(figsize=(12, 5), layout="constrained")
    for head, ax in enumerate(figure.subplots(2, 4, sharex=True, sharey=True).flat):
        plot.attention_matrix(ax, grid, task.xc[:30], weights[head])
        ax.set(title=f"head {head + 1}")
        ax.label_outer()
    return figure


def digits(model, images) -> Figure:
    """A digit of MNIST completed from 10, 40, 100 and 300 random pixels, and from its upper half: what is seen, mean,
    standard deviation (`plot.completion`)."""
    pixels = images.test[8][..., 0] / 127.5 - 1
    order = np.random.default_rng(0).permutation(pixels.size)
    upper = np.arange(pixels.size // 2)
    seen = {**{f"{n} pixels": order[:n] for n in (10, 40, 100, 300)}, "upper half": upper}
    figure = Figure(figsize=(10, 6.2), layout="constrained")
    columns = figure.subplots(3, len(seen)).T
    for axes, (title, some) in zip(columns, seen.items(), strict=True):
        context = np.full(pixels.size, np.nan)
        context[some] = pixels.ravel()[some]
        context = context.reshape(pixels.shape)
        plot.completion(axes, context, *complete(model, context, 28))
        axes[0].set(title=title)
    for ax, name in zip(columns[0], ("seen", "mean", "standard deviation"), strict=True):
        ax.set(ylabel=name)
    return figure


def resolution(model, images) -> Figure:
    """Two digits of MNIST from 4 x 4 and from 28 x 28 pixels, asked for at coordinates of 32 x 32 and 256 x 256
    (`plot.completion`)."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    for axes, (number, side) in zip(figure.subplots(3, 4).T, ((8, 4), (8, 28), (0, 4), (0, 28)), strict=True):
        pixels = images.test[number][..., 0] / 127.5 - 1
        coarse = pixels.reshape(side, 28 // side, side, 28 // side).mean(axis=(1, 3))
        finer = 32 if side == 4 else 256
        plot.completion(axes, coarse, *complete(model, coarse, finer))
        axes[0].set(title=f"{side} to {finer}")
    return figure


def epidemic(model) -> Figure:
    """Three epidemics, a tenth of the cells seen: entropy, prediction and truth (`plot.epidemic_panels`)."""
    tasks = npax.tasks.sir_lattice(64)
    x = npax.tasks.pixel_coordinates(64, 64, 4 / 64)
    figure = Figure(figsize=(11, 9), layout="constrained")
    for row, seed in zip(figure.subplots(3, 4), (1, 3, 4), strict=True):
        truth = np.asarray(tasks.frame(jr.key(seed)))
        seen = np.random.default_rng(seed).permutation(truth.size)[: truth.size // 10]
        context = np.full(truth.size, -1)
        context[seen] = truth.ravel()[seen]
        predicted = eqx.filter_jit(model)(x[seen], jax.nn.one_hot(context[seen], 3), x)
        handles = plot.epidemic_panels(row, context.reshape(64, 64), predicted.mean.reshape(64, 64, 3), truth)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def flow(model) -> Figure:
    """Kolmogorov flow seen at 400 of the 4,096 nodes of a block of space and time, one of whose 16 times is shown
    (`plot.flow_panels`)."""
    tasks = npax.tasks.KolmogorovTask(npax.tasks.kolmogorov_flow(jr.key(7), 1))
    figure = Figure(figsize=(13, 7), layout="constrained")
    for row, seed in zip(figure.subplots(2, 4), (0, 1), strict=True):
        x, y = tasks.block(jr.key(seed))
        seen = np.random.default_rng(seed).permutation(4096)[:400]
        predicted = eqx.filter_jit(model)(x.reshape(-1, 3)[seen], y.reshape(-1, 2)[seen], x[8].reshape(-1, 3))
        mean, std, truth = (
            np.asarray(a).reshape(16, 16, 2).swapaxes(0, 1) for a in (predicted.mean, predicted.variance**0.5, y[8])
        )
        now = seen[seen // 256 == 8]
        context = x.reshape(-1, 3)[now, 1:], y.reshape(-1, 2)[now]
        plot.flow_panels(row, x[8, :, 0, 1], x[8, 0, :, 2], mean, std, truth, context)
    return figure


def weather(model, dataset) -> Figure:
    """Air temperature (degrees Celsius) in Western Europe, where the model was not trained, seen at 100 of the 1,125
    nodes of 30 hours; the middle time (`plot.task_panels`)."""
    train = npax.tasks.gridded(dataset, "t2m", region=npax.tasks.CENTRAL_EUROPE)
    tasks = npax.tasks.gridded(
        dataset, "t2m", region=npax.tasks.WESTERN_EUROPE, scaling=train.scaling, stride=(2, 2, 1)
    )
    figure = Figure(figsize=(14, 8), layout="constrained")
    for row, seed in zip(figure.subplots(2, 4), (0, 4), strict=True):
        x, y = tasks.block(jr.key(seed))
        seen = np.random.default_rng(seed).permutation(1125)[:100]
        predicted = eqx.filter_jit(model)(x.reshape(-1, 4)[seen], y.reshape(-1, 1)[seen], x[2].reshape(-1, 4))
        degrees = np.asarray(x, float) * tasks.scaling.x_std + tasks.scaling.x_mean
        celsius = tasks.scaling.undo(y)[..., 0] - 273.15
        mean = tasks.scaling.undo(predicted.mean).reshape(15, 15) - 273.15
        std = np.asarray(predicted.variance).reshape(15, 15) ** 0.5 * tasks.scaling.y_std[0]
        now = seen[seen // 225 == 2]
        context = degrees.reshape(-1, 4)[now][:, [1, 0]], celsius.reshape(-1)[now]
        axes = degrees[2, 0, :, 1], degrees[2, :, 0, 0]
        plot.task_panels(row, *axes, mean, std, celsius[2], context, coords="latlon")
    return figure


def satellite(file) -> Figure:
    """Land surface temperature of 4 August 2016 (MODIS; Heaton et al. 2019), 300 x 500 pixels of which 30 % lie under
    clouds: what is seen, what `npax.fill_gaps` makes of it, its standard deviation, the truth (`plot.field`)."""
    filled = npax.inference.fill(npax.load("field-universal"), file["mask_temp"])
    figure = Figure(figsize=(13, 8), layout="constrained")
    pictures = {"seen": file["mask_temp"], "mean": filled.mean, "standard deviation": filled.std()}
    pictures["truth"] = file["true_temp"]
    low, high = np.nanpercentile(file["mask_temp"], [0.5, 99.5])
    for ax, (title, values) in zip(figure.subplots(2, 2).ravel(), pictures.items(), strict=True):
        uncertain = title == "standard deviation"
        style = {"cmap": "magma_r"} if uncertain else {"cmap": "RdYlBu_r", "limits": (low, high)}
        drawn = plot.field(ax, file["lon"], file["lat"], values, coords="latlon", **style)
        figure.colorbar(drawn, ax=ax, shrink=0.8, extend="both", label="°C")
        ax.set(title=title)
    return figure


def covariates(dataset) -> Figure:
    """Air temperature of Europe at noon of 4 July 2022 (ERA5) from 300 places: by where they are alone, and with the
    elevation, and whether it is land, as covariates (`npax.interpolate`, `plot.field`)."""
    now = dataset.isel(time=14)
    celsius = (now.t2m - 273.15).rename("celsius")
    ground = celsius.to_dataset().assign(elevation=now.elevation.clip(0), land=(now.elevation > 0) * 1.0)
    table = ground.to_dataframe().reset_index()
    stations = table.iloc[np.random.default_rng(0).permutation(len(table))[:300]]
    given = {"x": ["lon", "lat"], "y": "celsius", "coords": "latlon"}
    pictures = {"truth, and where it is seen": celsius}
    for title, beside in {"places alone": [], "with elevation and land": ["elevation", "land"]}.items():
        with warnings.catch_warnings():  # the corners lie beyond the outermost places, the Alps above the highest
            warnings.simplefilter("ignore", Extrapolation)
            found = npax.interpolate(stations, ground, covariates=beside, **given).celsius_mean
        error = float(np.sqrt(((found - celsius) ** 2).mean()))
        pictures[f"{title}: RMSE {error:.2f} °C"] = found
    figure = Figure(figsize=(16, 4.6), layout="constrained")
    for ax, (title, values) in zip(figure.subplots(1, 3), pictures.items(), strict=True):
        limits = float(celsius.min()), float(celsius.max())
        drawn = plot.field(ax, now.lon, now.lat, values, coords="latlon", cmap="RdYlBu_r", limits=limits)
        ax.set(title=title)
    figure.axes[0].plot(stations.lon, stations.lat, "k.", markersize=2)
    figure.colorbar(drawn, ax=figure.axes, shrink=0.8, label="°C")
    return figure


def complete(model, context, side):
    """Mean and standard deviation `[side side]` of a square picture of which some pixels are NaN."""
    here = npax.tasks.pixel_coordinates(*context.shape, 4 / len(context))
    seen = ~np.isnan(context.ravel())
    y = jnp.asarray(context.ravel()[seen], jnp.float32)[:, None]
    predicted = eqx.filter_jit(model)(here[seen], y, npax.tasks.pixel_coordinates(side, side, 4 / side))
    return (np.asarray(a).reshape(side, side) for a in (predicted.mean, predicted.variance**0.5))


if __name__ == "__main__":
    main()
