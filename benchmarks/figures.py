"""The tables of `docs/figures.md` that are of `npax bench` or of the shipped model, and rows of that in the README:
written anew from the results.

    python benchmarks/figures.py

Each table stands between `<!-- name -->` and `<!-- end -->`, a row is known by its command; the rest stays as it is.
"""

import re
from pathlib import Path

import _shipped
from _report import RESULTS, table

from npax.bench import read
from npax.bench.published import PUBLISHED
from npax.files import write_atomically

ROOT = Path(__file__).parent.parent
PAGE, README = ROOT / "docs" / "figures.md", ROOT / "README.md"
BENCH = RESULTS / "bench"
NAMES = {
    "bayes_floor": "Bayes floor",
    "gp": "Gaussian process fitted to each task",
    "cnp": "CNP",
    "np": "NP",
    "bnp": "BNP",
    "canp": "CANP",
    "anp": "ANP",
    "banp": "BANP",
    "rcnp": "RCNP",
    "convcnp": "ConvCNP",
    "tnp_d": "TNP-D",
    "tnp_nd": "TNP-ND",
    "tnp_a": "TNP-A",
    "eqtnp": "EQTNP",
    "lbanp": "LBANP",
    "pt_tnp": "PT-TNP",
    "te_tnp": "TE-TNP",
    "te_pt_tnp": "TE-PT-TNP",
    "tnp_kr_full": "TNP-KR: Full, with the bias of SA",
    "tnp_kr_sa": "TNP-KR: SA",
    "tnp_kr_sa_invariant": "TNP-KR: SA, translation invariant",
    "tnp_kr_sa_rotary": "TNP-KR: SA, rotary",
    "tnp_kr_sa_periodic": "TNP-KR: SA, periodic",
    "tnp_kr_sa_spectral": "TNP-KR: SA, spectral",
    "tnp_kr_perf": "TNP-KR: PERF",
    "tnp_kr_perf_rotary": "TNP-KR: PERF, rotary",
    "tnp_kr_dka": "TNP-KR: DKA",
    "tnp_kr_dka_rotary": "TNP-KR: DKA, rotary",
}
UNTRAINED = ("bayes_floor", "gp")
OF_BENCH = {
    "gp1d": ("1500-steps", {"RBF": "gp1d-rbf", "Matern 3/2": "gp1d-matern32", "periodic": "gp1d-periodic"}),
    "gp1d-longer": ("4000-steps", {"RBF": "gp1d-rbf", "periodic": "gp1d-periodic"}),
    "gp2d": ("500-steps", {"RBF": "gp2d-rbf"}),
    "shift": ("1500-steps", {"0": "shift-0", "1": "shift-1", "2": "shift-2"}),
    "bimodal": ("1500-steps", {"NLL": "bimodal"}),
    "anp": ("1500-steps", {"NLL": "anp"}),
    "images": ("500-steps", {"MNIST": "mnist", "CelebA": "celeba", "CIFAR-10": "cifar10"}),
    "translated": ("300-steps", {"NLL": "tmnist"}),
    "worlds": (
        "300-steps",
        {
            "Kolmogorov flow": "kolmogorov",
            "Central Europe": "environment-central",
            "Western Europe": "environment-western",
            "Northern Europe": "environment-northern",
        },
    ),
    "epidemics": ("200-steps", {"64 x 64": "sir-128/sir-64", "128 x 128": "sir-128/sir-128"}),
    "larger-epidemics": (
        "200-steps",
        {
            "256 x 256, 8 tasks": "sir-256/sir-256",
            "in tiles": "sir-256-tiled/sir-256",
            "1024 x 1024 in tiles, 2 tasks": "sir-1024/sir-1024",
        },
    ),
}
"""Steps of the rows, and the evaluation of each column: a task, of one table where several have it."""


def main() -> None:
    write_atomically(PAGE, with_tables(PAGE.read_text()).encode())
    write_atomically(README, with_rows(README.read_text()).encode())
    print(f"tables: {PAGE}, {README}")


def with_tables(text: str) -> str:
    """The page with the tables of the present results."""
    tables = {name: _of_bench(*about) for name, about in OF_BENCH.items()}
    tables |= {name: written() for name, written in _shipped.TABLES.items()}
    for name, written in tables.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if len(between.findall(text)) != 1:
            raise ValueError(f"{PAGE} must have one part between `<!-- {name} -->` and `<!-- end -->`.")
        text = between.sub(lambda found: found[1] + "\n" + written + "\n" + found[2], text)  # noqa: B023
    return text


def with_rows(text: str) -> str:
    """The README with the rows of the present results."""
    for command, written in _shipped.ROWS.items():
        there = re.compile(rf"(?:^\|.*\| {re.escape(command)} \|\n)+", re.MULTILINE)
        if len(there.findall(text)) != 1:
            raise ValueError(f"{README} must have the rows of the command {command}, and in one place.")
        rows = written()
        rows = rows if isinstance(rows[0], list) else [rows]
        anew = "".join(f"| {' | '.join([*cells, command])} |\n" for cells in rows)
        text = there.sub(lambda _: anew, text)  # noqa: B023
    return text


def _of_bench(steps, columns):
    cells = {model: found for model in NAMES if (found := _row(model, steps, columns.values()))}
    order = sorted(cells, key=lambda model: (model not in UNTRAINED, min(nll for nll, _ in cells[model].values())))
    rows = [[NAMES[model], *(_cell(cells[model].get(task)) for task in columns.values())] for model in order]
    return table(["", *columns], rows)


def _row(model, steps, columns):
    """NLL and published NLL in those of the columns that the model was scored for."""
    budget = "" if model in UNTRAINED else f".{steps}.1-seeds"
    found = {}
    for column in columns:
        of, _, task = column.rpartition("/")
        for path in BENCH.glob(f"{of or '*'}.{model}{budget}.*-tasks.jsonl"):
            for row in read(path)[0]:
                if row.task == task:
                    found[column] = row.nll, PUBLISHED.get(task, {}).get(model)
    return found


def _cell(figures):
    if figures is None:
        return ""
    nll, published = figures
    return f"{nll:.3f}" if published is None else f"{nll:.3f} ({published:.3f})"


if __name__ == "__main__":
    main()
