"""What large contexts and maps cost, what is bound by what, and how good the answers are: `results/scale.md`.

    npax bench speed --folder benchmarks/results/speed -o benchmarks/results/speed.md
    python benchmarks/roofline.py
    python benchmarks/strategy.py
    python benchmarks/heaton.py --data heaton_satellite.npz --name heaton
    python benchmarks/scale.py

Measures nothing: it puts side by side what the commands before it measured and kept, each with its own device and date.
"""

import json
import statistics
from pathlib import Path

from _report import RESULTS, table
from roofline import bound

from npax.bench import speed

PUBLISHED = 49.5
"""Seconds of KR2's TNP-KR: SA for 100 K context points and a million targets on a graphics processor of 24 GB."""


def main() -> None:
    parts = (_large(), _growth(), _ceilings(), _crossing(), _satellite())
    text = "\n\n".join(part for part in parts if part)
    (RESULTS / "scale.md").write_text(f"# Scale\n\n`python benchmarks/scale.py`\n\n{text}\n")


def _large():
    """The headline: 100,000 observations, a million predictions."""
    nc, nt = speed.IMAGES[1024]
    found = [timing for timing in _timings() if (timing.table, timing.nc, timing.nt) == ("images", nc, nt)]
    rows = [[f"`{timing.row}`", _seconds(timing), f"{timing.peak_gb:.2f}", _where(timing)] for timing in found]
    return (
        f"## {nc:,} observations, {nt:,} predictions\n\n"
        + table(["", "seconds", "GB at most", "measured"], rows)
        + f"\nPublished, TNP-KR: SA on a graphics processor of 24 GB: {PUBLISHED} s. `tiled`: the shipped model, each "
        "target from the 128 observations around it. `tnp_kr_dka`, `tnp_kr_perf`, `tnp_kr_sa`: models in which every "
        "target sees all observations. Memory: resident, with all of Python. Command: `npax bench speed --table images "
        "--largest 1048576`; all sizes: [the tables](speed.md)."
    )


def _growth():
    """How the seconds grow with either size, by row: the exponent between the two largest sizes measured."""
    lines = []
    for name, axis in (("contexts", "nc"), ("targets", "nt")):
        for row in speed.ROWS:
            found = sorted(
                (getattr(timing, axis), statistics.median(timing.seconds))
                for timing in _timings()
                if (timing.table, timing.row, timing.outcome) == (name, row, "ok")
            )
            if len(found) > 1:
                (small, before), (large, after) = found[-2:]
                times = f"{after / before:.1f}"
                lines.append([name, f"`{row}`", f"{small:,}", f"{before:.3g}", f"{large:,}", f"{after:.3g}", times])
    header = ["larger and larger", "", "size", "seconds", "size", "seconds", "times as long"]
    return "## Growth\n\nOf the two largest sizes that were measured; ten times the size.\n\n" + table(header, lines)


def _ceilings():
    """Scan attention beside the machine's ceilings, at the block side that is best for each bias."""
    stored = _read("roofline")
    rows = []
    for name, part in stored["results"].items():
        for bias in dict.fromkeys(row["bias"] for row in part["rows"]):
            mine = [row for row in part["rows"] if row["bias"] == bias]
            shares = []
            for kind in ("forward", "gradient"):
                best = min(mine, key=lambda row: row[kind])
                products, exponentials = bound(part, best, kind)
                shares.append(f"{(products + exponentials) / best[kind]:.0%} (block {best['block']})")
                shares.append("exponentials" if exponentials > products else "products")
            rows.append([name, bias, *shares])
    header = ["", "bias", "forward, of the bound", "most of it", "gradient, of the bound", "most of it"]
    return (
        f"## Attention and the machine's ceilings\n\n{_circumstances(stored)}\n\n"
        + table(header, rows)
        + "\nThe bound is the time of the products and of the exponentials, one after the other, at the rates that the "
        "machine reaches on nothing else. [All blocks](roofline.md)."
    )


def _crossing():
    """Where tiles become cheaper than the exact answer."""
    stored = _read("strategy")
    rows = [
        [f"{row['nc']:,}", f"{row['nt']:,}", f"{row['exact']:.3g}", f"{row['tiled']:.3g}"]
        for row in stored["rows"]
        if row["nt"] == max(other["nt"] for other in stored["rows"])
    ]
    return (
        f"## Exact or tiled\n\n{_circumstances(stored)}\n\n"
        + table(["observations", "targets", "exact, s", "tiled, s"], rows)
        + "\n[More sizes, and accuracy](strategy.md): tiles are not behind."
    )


def _satellite():
    """The satellite benchmark beside the best published figure of each column."""
    stored = _read("heaton")
    (name, own), *published = stored["rows"].items()
    columns = {"rmse": min, "crps": min, "interval": min, "coverage": None, "minutes": min}
    best = {}
    for column, choose in columns.items():
        if choose is not None:
            value, method = choose((row[column], method) for method, row in published if column in row)
            best[column] = f"{value} ({method})"
    rows = [
        [name.strip("*"), *(f"{own[column]:.3g}" for column in columns)],
        ["best published", *(best.get(column, "") for column in columns)],
    ]
    return (
        f"## The satellite benchmark\n\n{_circumstances(stored)}\n\n"
        + table(["", *columns], rows)
        + f"\n{own['observed']:,} observed pixels, {own['predicted']:,} predicted. [All methods](heaton.md)."
    )


def _timings():
    return [speed.read(path) for path in sorted((RESULTS / "speed").rglob("*.json"))]


def _seconds(timing):
    if timing.outcome != "ok":
        limit = {"time": f"over {timing.limit_seconds:,.0f}", "memory": f"over {timing.limit_gb:.0f} GB"}
        return limit.get(timing.outcome, timing.outcome)
    median = statistics.median(timing.seconds)
    if len(timing.seconds) == 1:
        return f"{median:.3g} (one call)"
    return f"{median:.3g} ({min(timing.seconds):.3g} - {max(timing.seconds):.3g})"


def _where(timing):
    return f"{timing.device}; {timing.date}"


def _circumstances(stored):
    versions = ", ".join(f"{package} {number}" for package, number in stored["versions"].items())
    return f"`{stored['command']}`; {stored['date']}; {stored['device']}; {versions}."


def _read(name: str) -> dict:
    return json.loads(Path(RESULTS / f"{name}.json").read_text())


if __name__ == "__main__":
    main()
