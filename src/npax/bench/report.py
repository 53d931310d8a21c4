"""Markdown tables of results beside the published figures, with paired t-tests and learning curves."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import scipy.stats

from ..files import replaced
from .published import PUBLISHED, SOURCES
from .results import Result, read_all
from .run import EVALUATION_SEED
from .scores import GROUP, mean_and_error
from .tables import TITLES

REFERENCES = {
    "bayes_floor": "**Bayes floor**",
    "oracle": "oracle GP (knows the kernel)",
    "gp": "GP, fitted to each task",
}


@dataclasses.dataclass(frozen=True)
class Row:
    """A model in a table: its lines by task and seed, and the NLL `[tasks]` of each task, averaged over seeds."""

    model: str
    lines: dict[str, list[Result]]
    nll: dict[str, np.ndarray]

    @property
    def first(self) -> Result:
        return next(iter(self.lines.values()))[0]

    def mean(self, field: str, task: str) -> float:
        return float(np.mean([getattr(line, field) for line in self.lines[task]]))

    def nll_of_seeds(self, task: str) -> np.ndarray:
        """The mean over evaluation tasks, `[seeds]`, in the order of the seeds."""
        return np.array([line.nll for line in sorted(self.lines[task], key=lambda line: line.seed)])

    def nll_and_error(self, task: str) -> tuple[float, float]:
        """The error is over seeds; where there is one seed only, over evaluation tasks."""
        seeds = self.nll_of_seeds(task)
        return mean_and_error(seeds if len(seeds) > 1 else self.nll[task])


def report(results: Path, pictures: Path | None = None) -> str:
    """Everything in a folder of results as Markdown: a section for each table and number of training steps.

    **Arguments:** `results`: the folder; `pictures`: where to draw learning curves to, if anywhere (needs
    matplotlib). Links to them are relative to its parent.
    """
    rows = [_row(lines, nll) for lines, nll in read_all(results)]
    order = {name: i for i, name in enumerate(TITLES)}
    rows.sort(key=lambda row: (order.get(row.first.table, len(order)), row.first.table, row.first.tasks))
    sections = []
    for (table, _), group in itertools.groupby(rows, lambda row: (row.first.table, row.first.tasks)):
        group = list(group)
        references = [row for model in REFERENCES for row in group if row.model == model]
        budgets = sorted({row.first.steps for row in group if row.first.steps})
        for steps in budgets or [0]:
            models = _with_most_seeds(row for row in group if row.first.steps == steps and steps)
            sections.append(_section(TITLES.get(table, table), references, models, pictures))
    sections.append(_until_published(rows))
    return "# Neural processes on the tasks of the papers\n\n" + _LEGEND + "\n" + "\n".join(filter(None, sections))


def differences(rows: list[Row], task: str) -> dict[tuple[str, str], tuple[float, float]]:
    """For each pair of models the mean difference in NLL, first minus second, and the p-value of a paired t-test: over
    seeds, which share their training tasks, where both have as many and more than one; else over the evaluation tasks.
    """
    pairs = {}
    for a, b in itertools.combinations(rows, 2):
        samples = a.nll_of_seeds(task), b.nll_of_seeds(task)
        if len(samples[0]) != len(samples[1]) or len(samples[0]) == 1:
            samples = a.nll[task], b.nll[task]
        test = scipy.stats.ttest_rel(*samples)
        difference, p_value = float(np.mean(samples[0] - samples[1])), float(test.pvalue)
        pairs[a.model, b.model], pairs[b.model, a.model] = (difference, p_value), (-difference, p_value)
    return pairs


REACHED = "published NLL after"
NOT_YET = "not yet"
PROCESSES = ("gp1d-rbf", "gp1d-matern32", "gp1d-periodic", "gp2d-rbf", "shift")
"""Tables of Gaussian processes, each of which has figures in a paper."""
IN_A_COLUMN = 18
"""Models in a column of a picture's legend."""
_LEGEND = f"""NLL: mean negative log-likelihood per target value in nats, of each target by itself; lower is better.
±: standard error over seeds; of a single seed, over the evaluation tasks. Gap: NLL above the Bayes floor (the exact
predictive with the kernel's hyper-parameters integrated out, which nothing that does not know the kernel beats in
expectation), paired task by task. Within a section all models have the same number of steps, batch size, optimiser
(`npax.training.muon`), training tasks and evaluation tasks (seed {EVALUATION_SEED}). Seconds: training of all seeds.
Published NLL after: the first point of the learning curve that is as low as the model's published figure; the curve
is of few tasks, so this is a little early.
Of classes (SIR): NLL is that of the class; RMSE, MAE and CRPS (the Brier score) are those of the entries of the
one-hot vector, coverage that of the smallest set of classes that holds 95 %.
"""


def _row(lines, nll):
    by_task = {}
    for line in lines:
        by_task.setdefault(line.task, []).append(line)
    return Row(lines[0].model, by_task, {task: np.asarray(values, float).mean(axis=0) for task, values in nll.items()})


def _with_most_seeds(rows):
    best: dict[str, Row] = {}
    for row in rows:
        if row.model not in best or row.first.seeds > best[row.model].first.seeds:
            best[row.model] = row
    return list(best.values())


def _section(title, references, models, pictures):
    rows = [*references, *models]
    tasks = list(rows[0].lines)
    models.sort(key=lambda row: row.nll_and_error(tasks[0])[0])
    text = f"## {title}\n\n{_budget(rows, models)}\n\n"
    if len(tasks) > 1:
        text += f"NLL by task, published figures in brackets:\n\n{_by_task([*references, *models], tasks)}\n"
    text += "\n".join(_of_task(references, models, task, tasks) for task in tasks)
    if models and pictures is not None:
        name = f"{models[0].first.table}.{models[0].first.steps}-steps.{models[0].first.tasks}-tasks.png"
        if _draw(pictures / name, title, references, models, tasks[0]):
            text += f"\n![Learning curves: {title}]({pictures.name}/{name})\n"
    return text


def _of_task(references, models, task, tasks):
    """All scores on one of the evaluations, the best model first, and the tests."""
    heading = f"### {task}\n\n" if len(tasks) > 1 else ""
    models = sorted(models, key=lambda row: row.nll_and_error(task)[0])
    text = heading + _scores([*references, *models], task, with_curve=task == tasks[0])
    if len(models) > 1:
        text += (
            "\nDifference in NLL, row minus column; **bold**: those of which at most 5 % are expected to be chance, by "
            f"paired t-tests over {_paired(models)} (Benjamini and Hochberg 1995).\n\n{_tests(models, task)}"
        )
    return text


def _budget(rows, models):
    one = (models or rows)[0].first
    parts = [f"{one.tasks:,} evaluation tasks"]
    if models:
        seeds = sorted({row.first.seeds for row in models})
        parts.insert(0, f"{one.steps:,} steps of batch {one.batch}, seeds: {', '.join(map(str, seeds))}")
    devices = sorted({row.first.device for row in models or rows})
    versions = sorted({_without_commit(row.first.versions) for row in models or rows})
    dates = sorted(row.first.date for row in models or rows)
    parts += [
        "; ".join(devices),
        "; ".join(versions),
        dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}",
    ]
    source = f" Published: {SOURCES[one.table]}." if one.table in SOURCES else ""
    return "; ".join(parts) + "." + source


def _without_commit(versions):
    return ", ".join(f"{name} {number.split('+')[0]}" for name, number in versions.items())


def _scores(rows, task, *, with_curve):
    """`with_curve`: whether the learning curves, of the first evaluation, are of this one."""
    header = ["", "NLL", "gap", "published NLL", REACHED, "RMSE", "MAE", "CRPS", "95 % coverage"]
    header += ["parameters", "seconds"]
    left_out = {
        "gap": any(line.gap is None for row in rows for line in row.lines[task]),
        "published NLL": task not in PUBLISHED,
        REACHED: task not in PUBLISHED or not with_curve,
    }
    cells = []
    for row in rows:
        published = PUBLISHED.get(task, {}).get(row.model)
        trained = published is not None and row.first.steps
        cells.append(
            [
                REFERENCES.get(row.model, row.model),
                _plus_minus(*row.nll_and_error(task)),
                "" if left_out["gap"] else _gap(row, task),
                "" if published is None else f"{published:.3f}",
                _reached(_curve(row, task), row.nll[task], published) if trained and with_curve else "",
                *(f"{row.mean(field, task):.3f}" for field in ("rmse", "mae", "crps", "coverage")),
                f"{row.first.parameters:,}" if row.first.parameters else "",
                f"{row.first.seconds:,.0f}",
            ]
        )
    columns = [i for i in range(len(header)) if not left_out.get(header[i])]
    return table([header[i] for i in columns], [[row[i] for i in columns] for row in cells])


def _gap(row, task):
    if row.model == "bayes_floor":
        return "0"
    gaps = np.array([line.gap for line in row.lines[task]])
    return _plus_minus(*(mean_and_error(gaps) if len(gaps) > 1 else (gaps[0], row.mean("gap_error", task))))


def _curve(row, task):
    """`[points 2]`: steps and NLL, averaged over seeds."""
    return np.mean([line.curve for line in row.lines[task]], axis=0)


def _reached(curve, nll, published):
    """The first step of the learning curve with the published NLL. The curve is of few tasks only, so its points are
    moved by as much as its end, the model itself, differs on them from all tasks."""
    on_all = curve[:, 1] + nll.mean() - curve[-1, 1]
    steps = curve[on_all <= published, 0]
    return f"{steps[0]:,.0f} steps" if len(steps) else NOT_YET


def _until_published(rows):
    """For each model and Gaussian process the fewest steps, of all runs, that make it as good as the papers say."""
    runs: dict[str, dict[str, list[Row]]] = {}
    for row in sorted(rows, key=lambda row: row.first.steps):
        if row.first.table in PROCESSES and row.first.curve and _published(row) is not None:
            runs.setdefault(row.model, {}).setdefault(row.first.table, []).append(row)
    if not runs:
        return ""
    tables = [name for name in PROCESSES if any(name in by_table for by_table in runs.values())]
    body = [[model, *(_fewest(by_table.get(name, [])) for name in tables)] for model, by_table in sorted(runs.items())]
    return (
        "## Steps to the published NLL\n\nThe first point of the learning curve that is as low, and the steps of that "
        "run (the learning rate falls over all of them): of the shortest run that has one; else the steps of the "
        f"longest run, and its NLL above the published one.\n\n{table(['', *(TITLES[n] for n in tables)], body)}"
    )


def _published(row):
    """The figure for the first of its evaluations, which learning curves are of."""
    return PUBLISHED.get(next(iter(row.lines)), {}).get(row.model)


def _fewest(rows):
    """Of runs of one model, the shortest first."""
    missing = ""
    for row in rows:
        task, published = next(iter(row.lines)), _published(row)
        reached = _reached(_curve(row, task), row.nll[task], published)
        if reached != NOT_YET:
            return f"{reached}, of {row.first.steps:,}"
        missing = f"not after {row.first.steps:,}: {row.nll_and_error(task)[0] - published:+.3f}"
    return missing


def _by_task(rows, tasks):
    cells = []
    for row in rows:
        published = [PUBLISHED.get(task, {}).get(row.model) for task in tasks]
        figures = zip((row.nll_and_error(task) for task in tasks), published, strict=True)
        cells.append(
            [REFERENCES.get(row.model, row.model)]
            + [_plus_minus(*own) + ("" if other is None else f" ({other:.2f})") for own, other in figures]
        )
    return table(["", *tasks], cells)


def _paired(models):
    """What the tests are over."""
    seeds = {row.first.seeds for row in models}
    tasks = "the evaluation tasks, of these trained networks"
    if seeds == {1}:
        return tasks
    return "seeds" if len(seeds) == 1 else f"seeds where both have as many, else over {tasks}"


def _tests(models, task):
    pairs = differences(models, task)
    # The t-test of two that are equal on all tasks has no p-value.
    adjusted = scipy.stats.false_discovery_control([np.nan_to_num(p, nan=1.0) for _, p in pairs.values()])
    figures = {
        pair: f"**{mean:.3f}**" if p < 0.05 else f"{mean:.3f}"
        for (pair, (mean, _)), p in zip(pairs.items(), adjusted, strict=True)
    }
    cells = [[a.model, *(figures.get((a.model, b.model), "") for b in models)] for a in models]
    return table(["", *(row.model for row in models)], cells)


def _draw(path, title, references, models, task):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = -(-(len(models) + 1) // IN_A_COLUMN)
    figure = Figure(figsize=(6 + 2 * columns, 5), layout="constrained")
    ax = figure.subplots()
    for i, row in enumerate(models):
        curve = _curve(row, task)
        style = ("-", "--", ":")[i // 10 % 3]
        ax.plot(*curve.T, f"C{i % 10}{style}", marker=".", label=row.model)
    for row in references:
        if row.model == "bayes_floor":
            ax.axhline(row.nll[task][:GROUP].mean(), color="black", linewidth=1, label="Bayes floor")
    ax.set(title=title, xlabel="training steps", ylabel="NLL on the first of the tasks")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right upper", ncols=columns)
    with replaced(path) as partial:
        figure.savefig(partial, dpi=120)
    return True


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _plus_minus(value, error):
    return f"{value:.3f} ± {error:.3f}"
