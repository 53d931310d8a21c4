"""The kernels of `npax.fused_attention` on a GPU: are they right, and how fast are they?

    python benchmarks/attention_gpu.py

First values and gradients against float64 on the host; the program ends where they are wrong. Then TFLOP/s beside the
scan and the materialised logits, and as a share of the rate of a large matrix product of the same type. Writes
`results/attention_gpu.md` and `.json` after each measurement; interrupted, the same command goes on where it stopped.
Without a GPU, `--interpret --sizes 64 --product 64` shows that the script works: its times mean nothing, and it writes
`results/attention_interpret.md` and `.json` instead.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from _report import RESULTS, circumstances, table, write_json, write_markdown

import npax

TYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}
BIASES = {
    "none": lambda heads: None,
    "rbf": lambda heads: npax.RBFNetworkBias(heads, key=jr.key(1)),
    "geometric": lambda heads: npax.GeometricRBFBias(heads, key=jr.key(1)),
}
TILINGS = {
    "forward": ["64-32-4-1", "64-32-4-2", "64-16-4-4", "128-32-8-4", "128-16-8-4", "128-64-8-1"],
    "both": ["64-32-4-2", "64-64-4-1", "128-32-8-2", "128-64-8-1"],
}
"""`block`, `step`, `warps` and `group`."""

THREE = "BF16_BF16_F32_X3"
"""Products of float32 as three of bfloat16, 16 bits precise: `fused-x3`. (It has not run on a GPU yet.)"""
TOLERANCES = {
    ("float32", "highest"): 2e-5,
    ("float32", THREE): 2e-4,
    ("float32", "default"): 5e-3,
    ("bfloat16", "default"): 3e-2,
}
"""Largest error over largest value, by type and precision of the products."""

PRODUCTS = {"forward": 4, "both": 14}
"""Operations per pair, head and channel; what the backward pass computes again is not counted."""

SETTINGS = ("heads", "head_size", "product", "rounds")
"""Options that figures depend on."""


def main() -> None:
    options = _options()
    if jax.default_backend() != "gpu" and not options.interpret:
        sys.exit("JAX found no GPU: pip install 'npax[cuda]' on a machine with one, or --interpret.")
    notes = Notes(options)
    _check(notes, options)
    for dtype in TYPES:
        notes.measure(f"product {dtype}", partial(_product, dtype, options))
    cases = [(dtype, bias, direction) for direction in PRODUCTS for bias in BIASES for dtype in TYPES]
    middle = options.sizes[min(1, len(options.sizes) - 1)]
    _measure(notes, [(case, name, middle) for case in cases for name in _contenders(case, middle, options)], options)
    fast = [
        (case, name, n) for case in cases for n in options.sizes if n != middle for name in _best(notes, case, middle)
    ]
    _measure(notes, [entry for entry in fast if entry[1] in _contenders(*entry[::2], options)], options)
    print(_text(notes))


class Notes:
    """What has been measured, on disk and on screen."""

    def __init__(self, options):
        self.name = "attention_interpret" if options.interpret else "attention_gpu"
        self.options, self.results = options, {}
        self.about = {**circumstances(), **{name: getattr(options, name) for name in SETTINGS}}
        path = RESULTS / f"{self.name}.json"
        if path.exists():
            stored = json.loads(path.read_text())
            if all(stored.get(key) == self.about[key] for key in ("device", "versions", *SETTINGS)):
                # what failed may have been short of memory then, and is tried again
                self.results = {key: found for key, found in stored["results"].items() if not isinstance(found, str)}

    def lacks(self, key):
        return key not in self.results

    def measure(self, key, function):
        """What the function gives, or the error it ends with, or what was noted before."""
        if key not in self.results:
            try:
                self.results[key] = function()
            except Exception as error:  # what does not compile, or needs too much memory, must not end the rest
                self.results[key] = f"{type(error).__name__}: {error}"[:300]
            print(f"{key}: {self.results[key]}", flush=True)
            write_json(self.name, {**self.about, "results": self.results})
            write_markdown(self.name, "Attention on a GPU", _text(self), self.about)
        return self.results[key]


def _check(notes, options):
    wrong = []
    cases = [(*numbers, bias) for numbers in TOLERANCES for bias in BIASES]
    with ThreadPoolExecutor(options.threads) as pool:
        errors = {case: pool.submit(_error, *case, options) for case in cases if notes.lacks(f"error {' '.join(case)}")}
    for case in cases:
        key = f"error {' '.join(case)}"
        error = notes.measure(key, lambda case=case: errors[case].result())
        if isinstance(error, str) or not error < TOLERANCES[case[:2]]:
            wrong.append(f"{key}: {error}")
    if wrong:
        sys.exit("Wrong, so not timed:\n" + "\n".join(wrong))


def _error(dtype, precision, bias, options):
    """The largest, of the output and of the gradient of each operand, with some keys hidden and with all of them."""
    nq, nk = 300, 410
    operands, weight = _draw(nq, nk, dtype, bias, options)
    errors = []
    masks, tilings = (np.arange(nk) % 3 > 0, np.zeros(nk, bool)), (TILINGS["both"][0], TILINGS["forward"][3])
    for mask, tiling in itertools.product(masks, tilings):
        with jax.default_matmul_precision(precision):
            got = _gradients(_attention(f"fused {tiling}", options), operands, (), mask, weight)
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            exact, exact_weight = jax.tree.map(_float64, (operands, weight))
            true = _gradients(npax.dense_attention, exact, (), mask, exact_weight)
        for a, b in zip(_vectors(got), _vectors(true), strict=True):
            errors.append(np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-3))
    return float(np.max(errors))  # NaN if one is


def _float64(a):
    return jnp.asarray(np.asarray(a), jnp.float64)


def _vectors(result):
    """The output and the gradient of each operand, all their arrays in one."""
    parts = (jax.tree.leaves(part) for part in (result[0], *result[1]))
    return [np.concatenate([np.ravel(np.asarray(a, np.float64)) for a in part]) for part in parts if part]


def _contenders(case, n, options):
    """Who takes part at a size."""
    dtype, bias, direction = case
    names = [f"fused {tiling}" for tiling in TILINGS[direction]] + ["scan 512", "scan 2048"]
    if dtype == "float32":
        names += [f"fused-x3 {tiling}" for tiling in TILINGS[direction]]
    if 16 * options.heads * n**2 < options.memory * 1e9:  # logits, weights and their gradients, 4 bytes each
        names.append("materialised")
    if (bias, dtype) == ("none", "bfloat16") and not options.interpret:
        names.append("cudnn")
    return names


def _best(notes, case, n):
    """Of those that took part at a size, the fastest of each kind; and what has no rival."""
    times = {"materialised": np.inf, "cudnn": np.inf}
    for key, seconds in notes.results.items():
        *place, name = key.split(" ", 4)
        if place == [*case, str(n)] and isinstance(seconds, list):
            times[name] = statistics.median(seconds)
    kinds = {name.split()[0] for name in times}
    return [min((name for name in times if name.split()[0] == kind), key=times.__getitem__) for kind in sorted(kinds)]


def _measure(notes, entries, options):
    """All programs are compiled side by side; then each is timed, while nothing else runs."""
    with ThreadPoolExecutor(options.threads) as pool:
        programs = {
            _key(*entry): pool.submit(_compile, *entry, options) for entry in entries if notes.lacks(_key(*entry))
        }
    print(f"compiled {len(programs)} programs", flush=True)
    for key, program in programs.items():
        notes.measure(key, lambda program=program: _seconds(program.result(), options))


def _key(case, contender, n):
    return " ".join((*case, str(n), contender))


def _compile(case, contender, n, options):
    """A function that draws operands and gives one without arguments: a call of the compiled program."""
    dtype, bias, direction = case
    attend, mask = _attention(contender, options), np.ones(n, bool)

    def arguments():
        (*learned, xq, xk), weight = _draw(n, n, dtype, bias, options)
        return attend, learned, (xq, xk), mask, *((weight,) if direction == "both" else ())

    program = (_gradients if direction == "both" else _forward).lower(*arguments()).compile()

    def prepared():
        operands = arguments()
        return lambda: program(*operands)

    return prepared


def _seconds(prepare, options):
    """Seconds of several calls, after a first one: as many as the rounds, fewer where these take many seconds."""
    call = prepare()
    jax.block_until_ready(call())
    seconds = []
    while len(seconds) < options.rounds and (len(seconds) < 2 or sum(seconds) < options.patience):
        started = time.perf_counter()
        jax.block_until_ready(call())
        seconds.append(time.perf_counter() - started)
    return seconds


def _product(dtype, options):
    """TFLOP/s of a product of square matrices."""
    n = options.product
    a, b = (jr.normal(key, (n, n)).astype(TYPES[dtype]) for key in jr.split(jr.key(0)))
    multiply = jax.jit(jnp.matmul)
    return 2e-12 * n**3 / statistics.median(_seconds(lambda: lambda: multiply(a, b), options))


def _draw(nq, nk, dtype, bias, options):
    """(q, k, v, bias, xq, xk), and the weights of the output in a loss."""
    keys, heads, d = jr.split(jr.key(0), 6), options.heads, options.head_size
    q, k, v, weight = (jr.normal(keys[i], (heads, n, d)).astype(TYPES[dtype]) for i, n in enumerate((nq, nk, nk, nq)))
    xq, xk = (jr.uniform(key, (n, 2), minval=-2.0, maxval=2.0) for key, n in zip(keys[4:], (nq, nk), strict=True))
    return (q, k, v, BIASES[bias](heads), xq, xk), weight


@eqx.filter_jit
def _forward(attend, learned, fixed, mask):
    q, k, v, bias, xq, xk = (*learned, *fixed)
    return attend(q, k, v, bias=bias, xq=xq, xk=xk, mask=mask)


@eqx.filter_jit
def _gradients(attend, learned, fixed, mask, weight):
    def loss(learned):
        out = _forward(attend, learned, fixed, mask)
        return jnp.sum(weight * out, dtype=weight.dtype if weight.dtype == jnp.float64 else jnp.float32), out

    (_, out), gradients = eqx.filter_value_and_grad(loss, has_aux=True)(tuple(learned))
    return out, gradients


def _attention(contender, options):
    kind, _, detail = contender.partition(" ")
    if kind == "fused-x3":
        return jax.default_matmul_precision(THREE)(_attention(f"fused {detail}", options))
    if kind == "fused":
        shape = dict(zip(("block", "step", "warps", "group"), map(int, detail.split("-")), strict=True))
        return partial(npax.fused_attention, **shape, interpret=options.interpret)
    if kind == "scan":
        return partial(npax.scan_attention, block=int(detail))
    return {"materialised": npax.dense_attention, "cudnn": _cudnn}[kind]


def _cudnn(q, k, v, **_):
    """The vendor's fused attention, which knows no such bias."""
    q, k, v = (jnp.swapaxes(a, 0, 1)[None] for a in (q, k, v))
    return jnp.swapaxes(jax.nn.dot_product_attention(q, k, v, implementation="cudnn")[0], 0, 1)


def _text(notes):
    options, results = notes.options, notes.results
    errors = [[*key.split()[1:], _number(value)] for key, value in results.items() if key.startswith("error")]
    text = (
        f"{options.heads} heads of {options.head_size}, as many queries as keys, two columns of locations. Errors: the "
        "largest of the output and of the gradients of queries, keys, values, bias parameters and locations against "
        "float64, over the largest true value.\n\n"
        + table(["type", "precision of products", "bias", "error"], errors)
        + f"\nMilliseconds, medians of {options.rounds} calls; kernels as block-step-warps-group. TFLOP/s count 4 "
        "operations per pair, head and channel forward, 14 with the backward pass; the share is of the rate of one "
        f"product of matrices of {options.product:,} squared.\n\n"
    )
    for dtype in TYPES:
        rate = results.get(f"product {dtype}")
        if isinstance(rate, float):
            text += f"## {dtype}\n\nProduct: {rate:.1f} TFLOP/s.\n\n{table(*_rows(notes, dtype, rate))}\n"
    return text


def _rows(notes, dtype, rate):
    options = notes.options
    header = ["bias", "direction", "n", "kernel", "ms", "TFLOP/s", "share", "scan, ms", "materialised", "cuDNN"]
    rows = []
    for bias in BIASES:
        for direction, operations in PRODUCTS.items():
            for n in options.sizes:
                times = {}
                for key, value in notes.results.items():
                    *case, contender = key.split(" ", 4)
                    if case == [dtype, bias, direction, str(n)]:
                        times[contender] = statistics.median(value) if isinstance(value, list) else np.inf
                if not times:
                    continue
                name, seconds = min(
                    ((k, v) for k, v in times.items() if k.startswith("fused")),
                    key=lambda kv: kv[1],
                    default=("", np.inf),
                )
                scan = min((v for k, v in times.items() if k.startswith("scan")), default=None)
                speed = 1e-12 * operations * options.heads * options.head_size * n**2 / seconds
                cells = [
                    bias,
                    direction,
                    f"{n:,}",
                    name.removeprefix("fused "),
                    _ms(seconds),
                    f"{speed:.1f}",
                    f"{speed / rate:.0%}",
                ]
                rows.append([*cells, *(_ms(t) for t in (scan, times.get("materialised"), times.get("cudnn")))])
    return header, rows


def _ms(seconds):
    return "" if seconds is None else "failed" if seconds == np.inf else f"{1e3 * seconds:.2f}"


def _number(value):
    return f"{value:.1e}" if isinstance(value, float) else value


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2**13, 2**15, 2**17], help="numbers of points")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--head-size", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5, help="timed calls of each")
    parser.add_argument("--patience", type=float, default=2.0, help="seconds after which two calls of each are enough")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="that compile")
    parser.add_argument("--product", type=int, default=8192, help="side of the matrices whose product is timed")
    parser.add_argument("--memory", type=float, default=60.0, help="GB that materialised logits may take")
    parser.add_argument("--interpret", action="store_true", help="try the script without a GPU")
    return parser.parse_args()


if __name__ == "__main__":
    main()
