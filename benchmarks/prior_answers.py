"""How far the shipped model is from the answer that it is trained to give: that of its prior.

    python benchmarks/prior_answers.py

Intervals can be too wide since the prior has them so, or since the network has learned no better. Matern 3/2 fields of
variance 1, observed with noise at random places of the unit interval or square, and three answers: of the Gaussian
process that knows kernel and noise; of `GPPrior`, the average over processes drawn from it, weighted by the likelihood
of what is observed (importance sampling); and of `NeuralProcessRegressor`. Drawn noises are Gaussian, as in 85 % of the
prior: heavy tails are left out. Writes `results/prior_answers.md` and `.json`.
"""

import argparse
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from _report import circumstances, table, write_json, write_markdown
from _truth import best_answer, draw, matern32
from designs import anywhere, at_observations
from scipy.linalg import cholesky, solve_triangular

import npax
from npax.metrics import score_report
from npax.tasks.prior import DX, Field, Modulation, draw_noise

SCALE = 0.5
NEGLIGIBLE = 15.0
"""Nats below the likeliest from which a process has no say."""
AT_A_TIME = 50


class Question(NamedTuple):
    n: int
    d: int
    noise: float
    there: bool = False

    @property
    def name(self) -> str:
        return f"{self.n} in {self.d}-D, " + ("new observations there" if self.there else "the field itself")


QUESTIONS = (
    Question(100, 1, 0.3),
    Question(100, 1, 1.0),
    Question(150, 2, 0.3),
    Question(150, 2, 1.0),
    Question(60, 2, 0.3, there=True),
    Question(60, 2, 1.0, there=True),
)


class Answer(NamedTuple):
    """Moments `[TARGETS]`, and how many draws they are worth."""

    mean: np.ndarray
    std: np.ndarray
    draws: float = np.inf


def main() -> None:
    options = _options()
    about = {**circumstances(), "model": options.model, "fields": options.fields, "draws": options.draws}
    rows = []
    for question in QUESTIONS:
        asked = [_asked(question, options, seed) for seed in range(options.fields)]
        rows.append({"observations": question.name, "noise": question.noise, **_summary(asked)})
        print(rows[-1], flush=True)
        write_json("prior_answers", {**about, "rows": rows})
        write_markdown("prior_answers", "The prior's answer and the network's", _text(rows), about)


def _asked(question, options, seed):
    """Scores of the three answers, `[3, 3]`: CRPS, coverage, mean standard deviation; and the draws of the prior's."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(question.n, question.d))
    xt = (at_observations if question.there else anywhere)(rng, x)
    k = matern32(np.concatenate([x, xt]), SCALE)
    function = draw(rng, k)
    y = function + question.noise * rng.normal(size=len(k))
    n, new = question.n, question.there
    truth = (y if new else function)[n:]
    reg = npax.NeuralProcessRegressor(options.model).fit(x, y[:n])
    prior = prior_answer(x, y[:n], xt, new, options.draws, jr.key(seed))
    best = Answer(*best_answer(k, y[:n], question.noise, new))
    answers = best, prior, Answer(*reg.predict(xt, return_std=True, include_noise=new))
    scores = []
    for answer in answers:
        report = score_report(truth, answer.mean, answer.std)
        scores.append([report["crps"], report["coverage"], answer.std.mean()])
    return np.array(scores), prior.draws


def prior_answer(x: np.ndarray, y: np.ndarray, xt: np.ndarray, new: bool, draws: int, key) -> Answer:
    """Of the processes of `GPPrior`, on coordinates and values that are standardised as the estimator does it."""
    low, high = x.min(axis=0), x.max(axis=0)
    places, targets = (np.pad((a - low) / (high - low) * 4 - 2, ((0, 0), (0, DX - x.shape[1]))) for a in (x, xt))
    places, targets = places.astype(np.float32), targets.astype(np.float32)
    centre, unit = y.mean(), y.std()
    kept, best = [], -np.inf
    for some in jr.split(key, (draws // AT_A_TIME, AT_A_TIME)):
        for process in zip(*map(np.asarray, _processes(some, places, targets, x.shape[1])), strict=True):
            one = _posterior(*process, (y - centre) / unit, new, best)
            if one is not None:
                kept.append(one)
                best = max(best, one[0])
    likelihood, mean, variance = map(np.array, zip(*kept, strict=True))
    weight = np.exp(likelihood - likelihood.max())
    weight /= weight.sum()
    middle = weight @ mean
    spread = weight @ (variance + np.square(mean - middle))
    return Answer(middle * unit + centre, np.sqrt(spread) * unit, 1 / np.sum(np.square(weight)))


@eqx.filter_jit
def _processes(keys, x, xt, d):
    """Of each key a process's covariances of the observations, with noise, those with the targets, and the targets'
    variances and noises."""

    def draw(key):
        kind, field_key, restless_key, noise_key = jr.split(key, 4)
        plain = jr.bernoulli(kind)
        field = Field.draw(field_key, jnp.ones(len(x), bool), jnp.asarray(d), plain)
        restless = Modulation.draw(restless_key, plain)
        noise, _ = draw_noise(noise_key, 1, jnp.asarray(True))
        noise_x, noise_t = (noise * jnp.square(restless(a)) for a in (x, xt))
        return field(x, x) + jnp.diag(noise_x + 1e-5), field(x, xt), field.variance(xt), noise_t

    return jax.vmap(draw)(keys)


def _posterior(k, k_xt, variance, noise, y, new, best):
    """Log-likelihood of `y`, and mean and variance of the targets; None where it is negligible beside the `best`."""
    root = cholesky(k.astype(np.float64), lower=True, check_finite=False)
    white = solve_triangular(root, y, lower=True, check_finite=False)
    likelihood = -0.5 * white @ white - np.sum(np.log(np.diag(root)))
    if likelihood < best - NEGLIGIBLE:
        return None
    gain = solve_triangular(root, k_xt.astype(np.float64), lower=True, check_finite=False)
    return likelihood, white @ gain, np.maximum(variance - np.sum(np.square(gain), axis=0), 0.0) + new * noise


def _summary(asked):
    scores = np.array([scores for scores, _ in asked])
    above = scores[:, 1:, 0] / scores[:, :1, 0] - 1
    wider = np.exp(np.log(scores[:, 1:, 2] / scores[:, :1, 2]).mean(axis=0))
    draws = np.array([draws for _, draws in asked])
    return {
        "coverage": scores[..., 1].mean(axis=0).tolist(),
        "wider": wider.tolist(),
        "above": above.mean(axis=0).tolist(),
        "above_error": (above.std(axis=0, ddof=1) / len(above) ** 0.5).tolist(),
        "effective_draws": [draws.min().item(), np.median(draws).item()],
    }


def _text(rows) -> str:
    header = ["observations", "noise", "coverage: best", "prior", "network", "standard deviation to the best: prior"]
    header += ["network", "CRPS above the best: prior", "network", "effective draws, least and median"]
    cells = []
    for row in rows:
        cells.append([row["observations"], f"{row['noise']:g}", *(f"{share:.1%}" for share in row["coverage"])])
        cells[-1] += [f"{ratio:.2f}" for ratio in row["wider"]]
        cells[-1] += [f"{a:.0%} ± {e:.0%}" for a, e in zip(row["above"], row["above_error"], strict=True)]
        cells[-1].append("{:.0f}, {:.0f}".format(*row["effective_draws"]))
    return (
        f"Matern 3/2 fields of length scale {SCALE:g}. The best: the Gaussian process that knows kernel and noise. The "
        "prior: the mean and standard deviation over processes of `GPPrior`, weighted by likelihood. Coverage of 95 % "
        "intervals; means over fields (geometric ones of ratios), ± standard error.\n\n" + table(header, cells)
    )


def _options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="gp-universal", help="a pretrained model's name, or a path of weights")
    parser.add_argument("--fields", type=int, default=10)
    parser.add_argument("--draws", type=int, default=4000, help="processes of the prior")
    return parser.parse_args()


if __name__ == "__main__":
    main()
