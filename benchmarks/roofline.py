"""Scan attention beside what the machine can do at best: how much of the bound does it reach?

    python benchmarks/roofline.py

Ceilings are measured on one core: products of matrices of the shapes that attention has, exponentials of an array in
the cache, copies of one that is not; those of all cores are as many times that. The bound is the time of the arithmetic
that cannot be avoided (products, one exponential per pair and head, those of the bias), one after the other.
One core, all cores with every operation shared among them (JAX's default), and one device per core with the queries
split (`npax.devices`). Needs an otherwise idle machine; takes some minutes. Writes `results/roofline.md` and `.json`.
"""

import argparse
import functools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import jax.random as jr
from _report import circumstances, table, write_json, write_markdown
from _worker import best

import npax
from npax.bias.exponential import exp2_nonpositive
from npax.devices import cores, everywhere, local_mesh, split

HEADS, SIZE, BLOCKS = 4, 32, (128, 256, 512, 1024)
BIASES = {"none": (0.0, 0.0), "geometric": (2 / HEADS, 0.0), "TISA": (0.0, 5.0)}
"""Exponentials per pair and head beside that of the softmax: XLA's, and those of `bias/exponential.py`."""


def main() -> None:
    options = _options()
    if options.measure:
        print(json.dumps(measure(options)))
        return
    call = [sys.executable, __file__, "--measure", "--points", str(options.points), "--rounds", str(options.rounds)]
    contenders = {
        "one core": (["taskset", "-c", str(min(os.sched_getaffinity(0))), *call], {}),
        "all cores, operations shared": (call, {}),
        "all cores, a device each": (call, {"JAX_NUM_CPU_DEVICES": str(cores())}),
    }
    results = {}
    for name, (command, environment) in contenders.items():
        done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
        if name != "one core":  # measured on all of them they are lower, by what it takes to share an operation
            one = results["one core"]["ceilings"]
            results[name]["ceilings"] = {kind: cores() * ceiling for kind, ceiling in one.items()}
        print(f"{name}: {results[name]['ceilings']}", flush=True)
        print(table(*_rows(results[name])), flush=True)
    about = circumstances()
    write_json("roofline", {**about, "points": options.points, "rounds": options.rounds, "results": results})
    write_markdown("roofline", "Scan attention and the machine's limits", _text(results, options), about)


def measure(options) -> dict:
    """Ceilings, and seconds of the forward pass and of a gradient by bias and block, best of `rounds`."""
    n, mesh = options.points, local_mesh()
    q, k, v, d = (jr.normal(jr.key(i), (HEADS, n, SIZE)) for i in range(4))
    x = jr.uniform(jr.key(4), (n, 2), minval=-2.0, maxval=2.0)
    biases = {"none": None, "geometric": npax.GeometricRBFBias(HEADS, key=jr.key(5))}
    biases["TISA"] = npax.RBFNetworkBias(HEADS, key=jr.key(5))
    timed = functools.partial(best, repeats=options.rounds)
    rows = []
    for name, bias in biases.items():
        for block in BLOCKS:

            def attend(shared, parts, block=block):
                bias, k, v, x = shared
                q, xq = jnp.swapaxes(parts[0], 0, 1), parts[1]
                return npax.scan_attention(q, k, v, bias=bias, xq=xq, xk=x, block=block)

            def loss(learned, x, attend=attend):
                (bias, k, v), q = learned
                return jnp.sum(split(attend, mesh, axis=1)((bias, k, v, x), (jnp.swapaxes(q, 0, 1), x)) * d)

            parts = everywhere((((bias, k, v), q), x), mesh)
            forward = timed(jax.jit(loss), *parts)
            gradient = timed(jax.jit(jax.grad(loss)), *parts)
            rows.append({"bias": name, "block": block, "forward": forward, "gradient": gradient})
    return {"devices": mesh.size, "ceilings": _ceilings(), "rows": rows, "pairs": HEADS * n * n}


def _ceilings():
    q, s = jnp.ones((HEADS, 512, SIZE)), jnp.ones((HEADS, 512, 512))
    a, row = jnp.ones((2048, 2048)), jnp.linspace(-5.0, 0.0, 1 << 24)
    small = row[: 1 << 18]

    def often(exponential):
        return jax.jit(lambda x: jax.lax.fori_loop(0, 64, lambda _, x: exponential(-jnp.abs(x)), x))

    flop = 2 * HEADS * 512 * 512 * SIZE
    return {
        "matmul_gflops": max(
            2 * 2048**3 / 1e9 / best(jax.jit(jnp.matmul), a, a),
            flop / 1e9 / best(jax.jit(lambda q, k: jnp.einsum("hqd,hkd->hqk", q, k)), q, q),
            flop / 1e9 / best(jax.jit(lambda p, v: jnp.einsum("hqk,hkd->hqd", p, v)), s, q),
        ),
        "exp_g_per_s": max(
            row.size / 1e9 / best(jax.jit(jnp.exp), row),
            64 * small.size / 1e9 / best(often(jnp.exp), small),
        ),
        "own_exp_g_per_s": 64 * small.size / 1e9 / best(often(exp2_nonpositive), small),
        "copy_gb_per_s": 8 * row.size / 1e9 / best(jax.jit(lambda x: x + 1), row),
    }


PASSES = {"forward": (2, 1), "gradient": (7, 2)}
"""Products of a pair of `SIZE` numbers, and times that its exponentials are computed. A gradient is a forward pass, the
scores again, and the gradients of weights, values, queries and keys."""


def bound(result, row, kind):
    """Seconds of the products, of the exponentials."""
    products, times = PASSES[kind]
    matmul = result["pairs"] * products * 2 * SIZE / 1e9 / result["ceilings"]["matmul_gflops"]
    library, own = BIASES[row["bias"]]
    seconds = (1 + library) / result["ceilings"]["exp_g_per_s"] + own / result["ceilings"]["own_exp_g_per_s"]
    return matmul, result["pairs"] * times / 1e9 * seconds


def _rows(result):
    header = ["bias", "block"]
    for kind in PASSES:
        header += [f"{kind}, ms", "products + exponentials at the ceiling, ms", "of the bound"]
    rows = []
    for row in result["rows"]:
        cells = [row["bias"], str(row["block"])]
        for kind in PASSES:
            matmul, exp = bound(result, row, kind)
            cells += [f"{1e3 * row[kind]:.1f}", f"{1e3 * matmul:.1f} + {1e3 * exp:.1f}"]
            cells.append(f"{(matmul + exp) / row[kind]:.0%}")
        rows.append(cells)
    return header, rows


def _text(results, options):
    parts = [
        f"{HEADS} heads of {SIZE}, {options.points:,} queries and keys in the plane, float32; best of {options.rounds} "
        "calls, compiled before. Bound: products and exponentials one after the other at the measured ceilings; "
        "everything else (maxima, sums, masks, copies) counts as loss.\n"
    ]
    for name, result in results.items():
        ceilings = result["ceilings"]
        parts.append(
            f"## {name.capitalize()}\n\nCeilings: products {ceilings['matmul_gflops']:.0f} GFLOP/s, exponentials "
            f"{ceilings['exp_g_per_s']:.2f} G/s, those of TISA's bias {ceilings['own_exp_g_per_s']:.2f} G/s, "
            f"copies {ceilings['copy_gb_per_s']:.1f} GB/s.\n"
        )
        parts.append(f"{table(*_rows(result))}\n")
    return "\n".join(parts)


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2048, help="queries, and keys (default 2,048)")
    parser.add_argument("--rounds", type=int, default=15, help="calls of each (default 15)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
