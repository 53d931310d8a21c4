"""What large contexts and maps cost, what is bound by what, and how good the answers are: `results/scale.md`.

    npax bench speed --folder benchmarks/results/speed -o benchmarks/results/speed.md
    python benchmarks/roofline.py
    python benchmarks/attention_gpu.py --memory 20 --threads 14 --rounds 5
    python benchmarks/strategy.py
    python benchmarks/heaton.py --data heaton_satellite.npz --model gp-universal
    python benchmarks/heaton.py --data heaton_satellite.npz
    python benchmarks/heaton.py --data heaton_satellite.npz --finetune 100
    python benchmarks/heaton.py --data heaton_satellite.npz --model kriging
    python benchmarks/scale.py

Measures nothing: it puts side by side what the commands before it measured and kept, each with its own device and date.
"""

import json
import statistics
from pathlib import Path

from _report import RESULTS, table
from roofline import bound

from npax.bench import speed

SATELLITE = ("heaton", "heaton_field", "heaton_field_finetuned", "heaton_kriging")
"""Results of `heaton.py`: gp-universal, field-universal, the same fine-tuned, a Gaussian process with all pixels."""


def main() -> None:
    timings = [speed.read(path) for path in sorted((RESULTS / "speed").rglob("*.json"))]
    text = "\n\n".join((_large(timings), _growth(timings), _ceilings(), _gpu(), _crossing(), _satellite()))
    (RESULTS / "scale.md").write_text(f"# Scale\n\n`python benchmarks/scale.py`\n\n{text}\n")


def _large(timings):
    """The headline: 100,000 observations, a million predictions."""
    nc, nt = speed.IMAGES[1024]
    published = speed.PUBLISHED_SPEED["images"][nc, nt]
    rows = [
        [f"`{timing.row}`", _seconds(timing), f"{timing.peak_gb:.2f}", _milliseconds(published.get(timing.row)), *where]
        for timing in timings
        if (timing.table, timing.nc, timing.nt) == ("images", nc, nt)
        for where in [(timing.device, timing.date)]
    ]
    return (
        f"## {nc:,} observations, {nt:,} predictions\n\n"
        + table(["", "seconds", "GB at most", "published, s, on a GPU of 24 GB", "device", "date"], rows)
        + f"\nPublished for `tnp_kr_sa`, exact: {_milliseconds(published['tnp_kr_sa'])} s. `tiled`: the shipped model, "
        "each target from the 128 observations around it. In the others every target sees all observations. Memory: "
        "resident, with all of Python. `npax bench speed --table images`; all sizes: [the tables](speed.md)."
    )


def _milliseconds(published):
    return "" if published is None else f"{float(published.replace(',', '')) / 1e3:g}"


def _growth(timings):
    """How the seconds grow with either size, by row, between the two largest sizes that were measured."""
    lines = []
    for name, axis in (("contexts", "nc"), ("targets", "nt")):
        for row in speed.ROWS:
            found = sorted(
                (getattr(timing, axis), statistics.median(timing.seconds))
                for timing in timings
                if (timing.table, timing.row, timing.outcome) == (name, row, "ok")
            )
            if len(found) > 1:
                (small, before), (large, after) = found[-2:]
                times = f"{after / before:.1f}"
                lines.append([name, f"`{row}`", f"{small:,}", f"{before:.3g}", f"{large:,}", f"{after:.3g}", times])
    header = ["larger and larger", "", "size", "seconds", "size", "seconds", "times as long"]
    return "## Growth\n\nBetween the two largest sizes that were measured.\n\n" + table(header, lines)


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


def _gpu():
    """The kernels beside the scan and the rate of products, at the largest size."""
    stored = _read("attention_gpu")
    largest = max(int(key.split()[3]) for key in stored["results"] if " forward " in key)
    rows = []
    for dtype in ("float32", "bfloat16"):
        for bias in ("none", "geometric", "rbf"):
            times = {}
            for key, seconds in stored["results"].items():
                if key.startswith(f"{dtype} {bias} forward {largest} ") and isinstance(seconds, list):
                    name, median = key.split()[4], statistics.median(seconds)
                    times[name] = min(median, times.get(name, median))  # of several tilings
            rate = 4e-12 * stored["heads"] * stored["head_size"] * largest**2 / times["fused"]
            cells = (f"{1e3 * times[name]:.0f}" if name in times else "" for name in ("fused", "scan", "cudnn"))
            share = f"{rate / stored['results'][f'product {dtype}']:.0%}"
            rows.append([dtype, bias, *cells, f"{times['scan'] / times['fused']:.1f}", f"{rate:.0f}", share])
    header = [
        "type",
        "bias",
        "kernels, ms",
        "scan, ms",
        "cuDNN, ms",
        "scan / kernels",
        "TFLOP/s",
        "of the product's rate",
    ]
    return (
        f"## Attention on a GPU, {largest:,} queries and keys\n\n{_circumstances(stored)}\n\n"
        + table(header, rows)
        + "\nForward; the operations on each pair beside the products are the limit, and with products of TF32 their "
        "operands' exchange between threads. [Other sizes, gradients, errors](attention_gpu.md)."
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
        + "\n[More sizes, and accuracy](strategy.md)."
    )


def _satellite():
    """The satellite benchmark beside the best published figure of each column."""
    found = {name: _read(name) for name in SATELLITE}
    columns = ("rmse", "crps", "interval", "minutes")
    own = {name.strip("*"): row for stored in found.values() for name, row in [next(iter(stored["rows"].items()))]}
    published = list(found["heaton"]["rows"].items())[1:]
    best = [min((row[column], method) for method, row in published) for column in columns]
    rows = [
        [name, *(f"{row[column]:.3g}" for column in columns), f"{row['coverage']:.2f}"] for name, row in own.items()
    ]
    rows.append(["best published", *(f"{value} ({method})" for value, method in best), "0.95 is right"])
    pixels = next(iter(own.values()))
    return (
        "## The satellite benchmark\n\n"
        + "\n\n".join(map(_circumstances, found.values()))
        + "\n\n"
        + table(["", *columns, "coverage"], rows)
        + f"\n{pixels['observed']:,} observed pixels, {pixels['predicted']:,} predicted. All methods: "
        + ", ".join(f"[{name}]({name}.md)" for name in SATELLITE)
        + "."
    )


def _seconds(timing):
    if timing.outcome != "ok":
        limit = {"time": f"over {timing.limit_seconds:,.0f}", "memory": f"over {timing.limit_gb:.0f} GB"}
        return limit.get(timing.outcome, timing.outcome)
    median = statistics.median(timing.seconds)
    if len(timing.seconds) == 1:
        return f"{median:.3g} (one call)"
    return f"{median:.3g} ({min(timing.seconds):.3g} - {max(timing.seconds):.3g})"


def _circumstances(stored):
    versions = ", ".join(f"{package} {number}" for package, number in stored["versions"].items())
    return f"`{stored['command']}`; {stored['date']}; {stored['device']}; {versions}."


def _read(name: str) -> dict:
    return json.loads(Path(RESULTS / f"{name}.json").read_text())


if __name__ == "__main__":
    main()
