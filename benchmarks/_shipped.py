"""The tables of `docs/figures.md` that say what the shipped model does, from the results beside this file."""

import json
import statistics

from _report import RESULTS, table

COVERAGES = ["95 % coverage", "of the best", "CRPS above the best"]
HOW = {"told": "errors given", "not told": "errors not given"}
"""As the results call it, and as the tables do."""


def even_designs() -> str:
    names = ["even, 12", "even, 40", "even, 150", "at random, 40 in 1-D", "even, 12 x 12", "even, 20 x 20"]
    names += ["at random, 144 in 2-D", "even, 5 x 5 x 5"]
    return _designs(["observations"], [([name], name, 0.3, 0.3) for name in names])


def asked_there() -> str:
    names = ["at random, 40 in 1-D", "at random, 60 in 2-D", "at random, 200 in 2-D"]
    rows = [([name, noise], f"{name}, asked there", 0.5, noise) for name in names for noise in (0.3, 1.0)]
    return _designs(["observations, asked there", "noise"], rows)


def field_itself() -> str:
    names = ["at random, 100 in 1-D", "at random, 300 in 2-D"]
    rows = [([name, noise], f"{name}, the field itself", 0.5, noise) for name in names for noise in (0.1, 0.3, 1.0)]
    return _designs(["observations, the field itself", "noise"], rows)


def gaps() -> str:
    names = ["6 clusters, 2,000 in 2-D", "6 clusters, 2,000 in 3-D", "around a hole, 2,000 in 2-D, asked within"]
    rows = [([name, scale], name, scale, 0.1) for name in names for scale in (0.3, 1.0)]
    return _designs(["observations", "length scale"], rows)


def prior_answers() -> str:
    asked = ("coverage", "wider", "above")
    header = ["95 % coverage", "standard deviation to the best", "CRPS above the best"]
    rows = []
    for row in _read("prior_answers")["rows"]:
        coverage, wider, above = (row[name][-2:] for name in asked)
        cells = [f"{_percent(*coverage)} %", f"{wider[0]:.2f}, {wider[1]:.2f}", f"{_percent(*above, digits=0)} %"]
        rows.append([row["observations"], f"{row['noise']:g}", *cells])
    return table(["observations", "noise", *(f"{name}: the prior, npax" for name in header)], rows)


def anisotropy() -> str:
    rows = []
    for row in _read("anisotropy")["rows"]:
        if row["noise"] == 1 or row["places"].startswith("40 "):
            continue
        cells = ["" if value is None else f"{_percent(value)} %" for value in row["above"]]
        pairs = [", ".join(filter(None, cells[i : i + 2])) for i in (0, 2)]
        rows.append([row["places"], row["lengths"], *pairs])
    return table(["observations", "length scales", "units found", "each coordinate scaled by itself"], rows)


def argo_days() -> str:
    found = _read("anisotropy")["argo"]
    rows = [[row["coordinates"], *(f"{row[s]:.3f}" for s in ("rmse", "crps"))] for row in found]
    rows = [[*cells, f"{_percent(row['coverage'])} %"] for cells, row in zip(rows, found, strict=True)]
    return table(["coordinates", "RMSE", "CRPS", "95 % coverage"], rows)


def known_errors() -> str:
    rows = []
    for row in _read("known_errors")["rows"]:
        pairs = ([row.get(f"{who}, {how}") for how in HOW] for who in ("npax", "GP"))
        told = [f"{_percent(*(one['above'] for one in pair), digits=0)} %" if all(pair) else "" for pair in pairs]
        rows.append([row["errors"], f"{row['n']:,} in {row['d']}-D", *told])
    return table(["errors", "observations", *(f"{who}: {', '.join(HOW.values())}" for who in ("npax", "GP"))], rows)


def repeats() -> str:
    rows = []
    for row in _read("repeats")["rows"]:
        above = [
            f"{_percent(row[way]['elsewhere'], row[way]['there'], digits=0)} %" for way in ("auto", "exact", "tiled")
        ]
        cells = [f"{row['places']} places, {row['repeats']} times", f"{row['noise']:g}", *above]
        rows.append([*cells, f"{_percent(*row['auto']['coverage'])} %"])
    return table(["observations", "noise", "means (auto)", "exact", "tiled", "95 % coverage of auto"], rows)


def stations() -> str:
    names = {
        "meuse": "Logarithm of zinc, 155 sites of the Meuse",
        "ozone": "Ozone, up to 153 stations of the Midwest (ppb)",
        "rainfall": "Summer rainfall, 1,720 stations of North America (mm)",
        "temperature": "Temperature (ERA5), 200 places of the British Isles (K)",
    }
    kinds = {"rmse": "#.3g", "crps": "#.3g", "nll": "#.3g", "seconds": ".2f"}
    found, rows = _read("stations")["rows"], []
    for key, name in names.items():
        ours, fitted = found[key]["npax, zero-shot"], found[key]["GP, Matern 3/2, fitted"]
        both = [f"{ours[kind]:{form}} / {fitted[kind]:{form}}" for kind, form in kinds.items()]
        covered = f"{_percent(ours['coverage'])} / {_percent(fitted['coverage'])} %"
        rows.append([name, *both, covered, f"{_change(ours)} %"])
    header = ["data", "RMSE, npax / GP", "CRPS", "NLL", "seconds", "95 % coverage", "CRPS against the GP's"]
    return table(header, rows)


def covariates() -> str:
    names = {
        "zinc": "Logarithm of zinc: root of the distance to the river, elevation",
        "rainfall": "Summer rainfall of North America: elevation",
        "british_isles": "Temperature of the British Isles: elevation, land or not",
        "europe": "Temperature of Europe: elevation, land or not",
    }
    ways = ("npax, places alone", "npax, covariates", "universal kriging, fitted")
    found, rows = _read("covariates")["rows"], []
    for key, name in names.items():
        crps = [f"{found[key][way]['crps']:#.3g}" for way in (*ways, "least squares, npax on what is left")]
        covered = " / ".join(f"{_percent(found[key][way]['coverage'])}" for way in ways[1:])
        ours = found[key]["npax, covariates"]
        rows.append([name, *crps, f"{covered} %", f"{_change(ours)} %"])
    header = ["data: covariates", "CRPS, places alone", "with covariates", "universal kriging", "least squares first"]
    return table([*header, "95 % coverage, npax / kriging", "CRPS against kriging's"], rows)


COUNTED = ("npax, zero-shot", "GP of levels, Laplace, fitted", "GP of logarithms, fitted", "best possible")


def counted() -> str:
    rows = []
    for name, found in _read("counts")["rows"].items():
        nll, crps = (
            [f"{found[way][score]:.3f}" if way in found else "" for way in COUNTED] for score in ("nll", "crps")
        )
        covered = " / ".join(_percent(found[way]["coverage"]) for way in COUNTED[:2])
        seconds = " / ".join(f"{found[way]['seconds']:.2f}" for way in COUNTED[:2])
        rows.append([name, *nll, *crps[:2], f"{covered} %", seconds])
    header = ["counts", "NLL, npax", "Laplace", "logarithms", "best possible", "CRPS, npax", "Laplace"]
    return table([*header, "95 % coverage, npax / Laplace", "seconds"], rows)


POSITIVE = ("npax", "npax, of the values", "GP, fitted to logarithms", "best possible")


def positive() -> str:
    rows = []
    for name, found in _read("lognormal")["results"].items():
        there = [found.get(way) for way in POSITIVE]
        crps = ["" if each is None else _three(each["crps"]) for each in there]
        covered = [_percent(each["coverage"], digits=0) for each in there if each is not None]
        below = _percent(found["npax, of the values"]["below zero"], digits=0)
        rows.append([name, *crps, " / ".join(covered), f"{below} %"])
    header = ["values", "CRPS, LogNormalRegressor", "NeuralProcessRegressor of the values", "GP of logarithms"]
    return table(
        [*header, "best possible", "95 % coverage, %", "95 % intervals of the values that go below zero"], rows
    )


AVERAGED = ("npax", "npax, cells independent", "GP, fitted", "best possible")


def averages() -> str:
    rows = []
    for name, found in _read("averages")["fields"].items():
        std = [f"{found[way]['std']:.2f}" if way in found else "" for way in AVERAGED[:3]]
        covered = [_percent(found[way]["coverage"], digits=0) if way in found else "" for way in AVERAGED]
        above = [_percent(found[way]["above"], digits=0) if way in found else "" for way in AVERAGED[:3]]
        seconds = " / ".join(
            f"{found[way]['seconds']:.1f}" for way in ("npax", "GP, fitted") if found.get(way, {}).get("seconds")
        )
        rows.append([name, *(" / ".join(filter(None, each)) for each in (std, covered, above)), seconds])
    header = ["observations", "standard deviation to the best: npax / cells independent / GP"]
    header += [
        "95 % coverage, %: the same / best",
        "CRPS above the best, %: npax / cells independent / GP",
        "seconds, npax / GP",
    ]
    return table(header, rows)


def average_rates() -> str:
    rows = []
    for name, found in _read("averages")["rates"].items():
        shares = [f"{_percent(found[score], digits=0)} %" for score in ("coverage", "alone", "error")]
        rows.append([name, *shares, f"{found['seconds']:.1f}"])
    header = ["counts", "95 % coverage of average rates", "if cells were independent", "error of the median"]
    return table([*header, "seconds"], rows)


def papers_tasks() -> str:
    names = {"rbf-1d": "GP-1D RBF", "matern-1d": "GP-1D Matern 3/2", "rbf-2d": "GP-2D RBF"}
    results, rows = _read("gp_accuracy")["results"], []
    for key, name in names.items():
        best, *others = results[key]
        ours = next(row for row in others if row["predictor"] == "npax gp-universal, raw")
        least = f"{best['nll']:.3f}, {best['predictor']}"
        rows.append([name, f"{ours['nll']:.3f}", least, f"{ours['gap']:.3f}", f"{_percent(ours['coverage'])} %"])
    return table(["task", "npax", "best possible", "gap", "95 % coverage"], rows)


def views() -> str:
    rows, names = {}, ["gp-universal", "mirrored", "turned"]
    for row in _read("symmetrised")["rows"]:
        rows.setdefault(row["tasks"], {})[row["predictor"]] = f"{row['gap']:.3f}"
    return table(["task", "as it is", *names[1:]], [[task, *(found[n] for n in names)] for task, found in rows.items()])


def searches() -> str:
    kinds, rows = {"npax": "npax", "gp": "fitted process", "chance": "chance"}, []
    for row in _read("search")["rows"]:
        rows.append([f"{row['function']}, {row['noise']:.2g}", *(_regret(row[kind]) for kind in kinds)])
    return table(["function, noise", *kinds.values()], rows)


def searches_in_batches() -> str:
    rows = [[row["function"], *(_regret(row[way]) for way in ("npax", "gp"))] for row in _read("search")["batches"]]
    return table(["function", "npax", "fitted process"], rows)


def searches_of_known_errors() -> str:
    ways = {
        f"{key}, {how}": f"{who}, {HOW[how]}"
        for key, who in (("npax", "npax"), ("gp", "fitted process"))
        for how in HOW
    }
    rows = [[row["function"], *(_regret(row[way]) for way in ways)] for row in _read("search")["known_errors"]]
    return table(["function", *ways.values()], rows)


def strategies() -> str:
    rows = []
    for row in _read("noise")["rows"]:
        if row["n"] >= 1000 and row["noise"] != 0.3:
            above = [f"{100 * (row[way] / row['best'] - 1):.0f} %" for way in ("auto", "exact", "tiled")]
            rows.append([f"{row['n']:,} in {row['d']}-D", f"{row['noise']:g}", *above, f"{row['averaged']:.0f}"])
    return table(["observations", "noise", "auto", "exact", "tiled", "auto averages"], rows)


def satellite_row() -> list[str]:
    (_, ours), *published = _read("heaton_field")["rows"].items()
    names = ("rmse", "crps", "interval")
    best = {name: min((row for _, row in published), key=lambda row: row[name]) for name in names}
    pairs = [(f"{ours[name]:.2f}", f"{row[name]:.2f}") for name, row in best.items()]
    minutes = sorted(row["minutes"] for row in best.values())
    bold = [(f"**{a}**", b) if float(a) < float(b) else (a, f"**{b}**") for a, b in pairs]
    seen, wanted = f"{ours['observed']:,}", f"{ours['predicted']:,}"
    return [
        f"Land temperature under clouds, {wanted} pixels from {seen}: RMSE, CRPS, interval score",
        f"{', '.join(a for a, _ in bold)} in {60 * ours['minutes']:.0f} s",
        f"{', '.join(b for _, b in bold)}, the best of {len(published)} published methods in each (as recalled, [not "
        f"all checked](docs/data.md)), {minutes[0]:.0f} to {minutes[-1]:.0f} minutes",
    ]


def stations_row() -> list[str]:
    found = _read("stations")["rows"]
    data = [found[name] for name in ("meuse", "ozone", "rainfall", "temperature")]
    ours, fitted = ([row[who] for row in data] for who in ("npax, zero-shot", "GP, Matern 3/2, fitted"))
    return [
        "Real stations, half of which, at most 300, predict the others, without training: CRPS of zinc in the soil "
        "(logarithm), ozone (ppb), rainfall (mm), temperature (K)",
        f"{_crps(ours)} ({_changes(ours)} % against the GPs)",
        f"{_crps(fitted)}, scikit-learn GPs fitted to each",
    ]


def covariates_row() -> list[str]:
    found = _read("covariates")["rows"]
    data = [found[name] for name in ("zinc", "rainfall", "british_isles", "europe")]
    ways = ("npax, covariates", "universal kriging, fitted", "npax, places alone")
    ours, kriging, without = ([row[way] for row in data] for way in ways)
    return [
        "With covariates (distance to a river, elevation): CRPS of zinc (logarithm), rainfall, temperature of the "
        "British Isles and of Europe",
        f"{_crps(ours)} ({_changes(ours)} % against kriging)",
        f"{_crps(kriging)}, universal kriging fitted to each; {_crps(without)}, npax without",
    ]


def counted_row() -> list[str]:
    rows = _read("counts")["rows"]
    titles = ("Ozone above 75 ppb, days of 89", "Ozone above 75 ppb, days of 14")
    titles += ("200 counts, 5 expected in each", "150 places, 1 to 20 tested, a half positive")
    data = [next(row for kind, row in rows.items() if kind.startswith(title)) for title in titles]
    each = [", ".join(f"{row[way]['nll']:.2f}" for row in data) for way in COUNTED[:3]]
    return [
        "Counts with exposures, without training: NLL of held-out counts: days with ozone above 75 ppb, of 89 and of "
        "14; Poisson counts (5 expected); positives among 1 to 20 tested",
        each[0],
        f"{each[1]}, GPs of the level fitted to each by Laplace's approximation; {each[2]}, GPs fitted to logarithms",
    ]


def positive_row() -> list[str]:
    *fields, zinc = _read("lognormal")["results"].values()
    ours, values, process = (_crps([row[way] for row in (*fields, zinc)]) for way in POSITIVE[:3])
    return [
        "Positive values, without training: CRPS where logarithms have the standard deviation 0.5, 1, 1.5, and of zinc "
        "in the soil (mg/kg)",
        ours,
        f"{process}, scikit-learn GPs fitted to the logarithms of each; {_crps([row[POSITIVE[3]] for row in fields])}, "
        f"best possible; {values}, npax of the values themselves",
    ]


def averages_rows() -> list[list[str]]:
    rows = [*_read("averages")["fields"].values()]
    ours, alone, fitted, best = AVERAGED

    def each(score, way):
        return ", ".join(_percent(row[way][score], digits=0) for row in rows if way in row)

    def beside(score):
        return (
            f"{each(score, fitted)} %, scikit-learn GPs fitted to each but the last; {each(score, alone)} %, if cells "
            "were independent"
        )

    return [
        [
            "Averages over regions of five kinds of fields, of 20 to 3,000 observations: coverage of 95 % intervals",
            f"{each('coverage', ours)} %",
            f"{each('coverage', best)} %, best possible; {beside('coverage')}",
        ],
        ["The same averages: CRPS above the best possible", f"{each('above', ours)} %", beside("above")],
    ]


def _crps(rows):
    return ", ".join(_three(row["crps"]) for row in rows)


def _three(number):
    """Digits, zeros at the end among them."""
    return f"{number:#.3g}".rstrip(".")


def _changes(rows):
    return ", ".join(map(_change, rows))


def _change(row):
    """By how many percent CRPS is larger (+) or smaller (-)."""
    return f"{-row['gain']:+z.1f} ± {row['gain_error']:.1f}"


def noise_row() -> list[str]:
    rows = [row for row in _read("noise")["rows"] if row["n"] == 4000 and row["noise"] == 1]
    above = {way: [f"{100 * (row[way] / row['best'] - 1):.0f}" for row in rows] for way in ("auto", "exact", "tiled")}
    seconds = sorted(row["seconds"] for row in rows)
    return [
        "4,000 noisy observations of a series, a map, a volume (noise as strong as the field): CRPS of the field above "
        "the best possible",
        f"{', '.join(f'**{share}**' for share in above['auto'])} % in {seconds[0]:.1f} to {seconds[-1]:.1f} s",
        f"{', '.join(above['exact'])} % all at once, {', '.join(above['tiled'])} % in tiles",
    ]


def papers_row() -> list[str]:
    best, *others = _read("gp_accuracy")["results"]["rbf-1d"]
    found = {row["predictor"]: row for row in others}
    fitted, ours = found["scikit-learn GP, fitted"], found["npax.NeuralProcessRegressor(normalize=False)"]
    raw, default = found["npax gp-universal, raw"], found["npax.NeuralProcessRegressor()"]
    return [
        "GP-1D RBF without training, the network on data as they are: NLL",
        f"{raw['nll']:.3f}, {raw['gap']:.3f} above the best possible (of the estimator {ours['gap']:.3f} by "
        f"`normalize=False`, {default['gap']:.3f} by default, on {default['tasks']} of the tasks)",
        f"{best['nll']:.3f}, best possible; on {fitted['tasks']} of the tasks {fitted['nll']:.2f} ± "
        f"{fitted['nll_standard_error']:.2f}, a scikit-learn GP fitted to each (medians there: "
        f"{ours['nll_median']:.2f} npax, {fitted['nll_median']:.2f} GP)",
    ]


ROWS = {
    "`python benchmarks/heaton.py --data heaton_satellite.npz`": satellite_row,
    "`python benchmarks/stations.py --data FOLDER`": stations_row,
    "`python benchmarks/covariates.py --data FOLDER`": covariates_row,
    "`python benchmarks/counts.py --data FOLDER`": counted_row,
    "`python benchmarks/lognormal.py --data FOLDER`": positive_row,
    "`python benchmarks/averages.py`": averages_rows,
    "`python benchmarks/noise.py`": noise_row,
    "`python benchmarks/gp_accuracy.py`": papers_row,
}
"""A row of the table in the README, or several, by their commands."""


def _regret(found):
    low, *_, high = regrets = found["regrets"]
    return f"{statistics.median(regrets):.4f} ({low:.4f} - {high:.4f})"


TABLES = {
    "stations": stations,
    "covariates": covariates,
    "counts": counted,
    "positive": positive,
    "averages": averages,
    "average-rates": average_rates,
    "even-designs": even_designs,
    "asked-there": asked_there,
    "field-itself": field_itself,
    "prior-answers": prior_answers,
    "gaps": gaps,
    "anisotropy": anisotropy,
    "argo-days": argo_days,
    "known-errors": known_errors,
    "papers-tasks": papers_tasks,
    "views": views,
    "strategies": strategies,
    "searches": searches,
    "searches-of-known-errors": searches_of_known_errors,
    "searches-in-batches": searches_in_batches,
    "repeats": repeats,
}


def _designs(header, chosen):
    """`chosen`: the first cells of each row, and design, length scale and noise of the result that it tells of."""
    found = {(row["design"], row["scale"], row["noise"]): row for row in _read("designs")["rows"]}
    rows = []
    for cells, *key in chosen:
        row = found[tuple(key)]
        figures = [f"{_percent(row[name])} %" for name in ("coverage", "best_coverage", "above")]
        rows.append([*(cell if isinstance(cell, str) else f"{cell:g}" for cell in cells), *figures])
    return table([*header, *COVERAGES], rows)


def _percent(*shares, digits=1):
    return ", ".join(f"{100 * share:.{digits}f}" for share in shares)


def _read(name):
    return json.loads((RESULTS / f"{name}.json").read_text())
