"""Joint predictions against the closed form of a Gaussian process."""

import inspect
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import untrained
from hypothesis import given, strategies as st
from laws import MODELS
from scipy.stats import multivariate_normal

import npax
from npax.inference import (
    Exact,
    Tiled,
    autoregressive,
    autoregressive_log_prob,
    chains,
    covariance,
    joint,
    joint_samples,
)
from npax.inference.buckets import bucket
from npax.inference.joint import nearest_correlation
from npax.inference.predict import to_model


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(3)
    xc = rng.uniform(-2, 2, (12, 1))
    return xc, np.sin(2 * xc), np.linspace(-2.5, 2.5, 9)[:, None]


def posterior(gp, xc, yc, xt, error=0.0):
    """Mean and covariance of the function, in float64."""

    def kernel(a, b):
        return np.exp(-0.5 * ((a - b.T) / gp.scale) ** 2)

    a = np.linalg.solve(kernel(xc, xc) + (gp.noise**2 + np.square(error)) * np.eye(len(xc)), kernel(xc, xt))
    return (a.T @ yc)[:, 0], kernel(xt, xt) - kernel(xt, xc) @ a


def in_model_units(predictor, xt):
    (context,) = predictor.contexts
    mask = context.mask
    return context.x[mask, :1].astype(float), context.y[mask].astype(float), predictor.frame(xt), context.standardiser


@pytest.mark.parametrize("kind", [Exact, Tiled])
@pytest.mark.parametrize("include_noise", [True, False])
def test_covariance_of_a_gp_is_its_posterior_covariance(gp, problem, kind, include_noise):
    xc, yc, xt = problem
    u, z, ut, standardiser = in_model_units(Exact(gp, xc, yc), xt)
    truth = posterior(gp, u, z, ut)[1] + include_noise * gp.noise**2 * np.eye(len(xt))
    predictor = kind(gp, xc, yc)
    found = covariance(predictor, xt, predictor(xt), include_noise=include_noise)[:, :, 0] / standardiser.std**2
    assert np.abs(found - truth).max() < 5e-3
    assert np.linalg.eigvalsh(found).min() > -1e-9


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_known_errors_are_on_the_diagonal(gp, problem, kind, rng):
    """Moments, covariances and samples of a process that knows them, in float64."""
    xc, yc, xt = problem
    error = np.where(rng.uniform(size=yc.shape) < 0.5, 0.0, rng.uniform(0.1, 1.0, yc.shape))
    u, z, ut, standardiser = in_model_units(Exact(gp, xc, yc, error=error), xt)
    mean, cov = posterior(gp, u, z, ut, error / standardiser.std)
    predictor = kind(gp, xc, yc, error=error)
    found = predictor(xt)
    assert np.abs(found.mean - standardiser.undo(mean[:, None])).max() < 1e-4
    assert np.abs(found.function_variance[:, 0] / standardiser.std**2 - np.diag(cov)).max() < 1e-4
    joint = covariance(predictor, xt, found, include_noise=False)[:, :, 0] / standardiser.std**2
    assert np.abs(joint - cov).max() < 5e-3
    drawn = joint_samples(predictor, xt, 512, jr.key(0))[..., 0] / standardiser.std
    assert np.abs(np.cov(drawn.T) - cov - gp.noise**2 * np.eye(len(xt))).max() < 0.15
    assert np.abs(posterior(gp, u, z, ut)[1] - cov).max() > 0.2


def test_views_share_the_samples(gp, problem, monkeypatch):
    """Each draws some of them, of the same process here, which is its own mirror image."""
    xc, yc, xt = problem
    u, z, ut, standardiser = in_model_units(Exact(gp, xc, yc), xt)
    mean, cov = posterior(gp, u, z, ut)
    predictor, numbers = Exact(npax.Symmetrised(gp), xc, yc), []
    original = joint.sample
    monkeypatch.setattr(joint, "sample", lambda *args, **options: numbers.append(args[4]) or original(*args, **options))
    drawn = (joint_samples(predictor, xt, 510, jr.key(0))[..., 0] - standardiser.mean) / standardiser.std
    assert numbers == [128, 128, 127, 127] and len(drawn) == 510
    assert np.abs(np.cov(drawn.T) - cov - gp.noise**2 * np.eye(len(xt))).max() < 0.15
    assert np.abs(drawn.mean(axis=0) - mean).max() < 0.15 < np.abs(mean).max()
    joint_samples(predictor, xt, 2, jr.key(0))
    assert numbers[4:] == [1, 1]


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_a_function_has_one_value_at_each_place(small, problem, kind):
    xc, yc, xt = problem
    predictor, again = kind(small, xc, yc), np.concatenate([xt, xt[::-1]])
    told = (again, predictor(again))
    clean, noisy = (covariance(predictor, *told, include_noise=noise)[..., 0] for noise in (False, True))
    once = covariance(predictor, xt, predictor(xt), include_noise=False)[..., 0]
    order = np.r_[np.arange(9), np.arange(9)[::-1]]
    np.testing.assert_allclose(clean, once[np.ix_(order, order)], rtol=1e-4, atol=1e-9)
    assert np.all((noisy - clean)[~np.eye(18, dtype=bool)] == 0)


def test_covariance_has_the_predicted_variances(small, problem):
    xc, yc, xt = problem
    predictor = Exact(small, xc, np.concatenate([yc, 1e3 * yc**2], axis=1))
    prediction = predictor(xt)
    found = covariance(predictor, xt, prediction)
    assert found.shape == (9, 9, 2)
    assert np.allclose(np.einsum("iic->ic", found), prediction.variance)
    assert np.allclose(found, found.transpose(1, 0, 2))


def test_covariance_has_a_limit(gp, problem):
    xc, yc, _ = problem
    predictor = Exact(gp, xc, yc)
    xt = np.linspace(0, 1, 1001)[:, None]
    with pytest.raises(ValueError, match="at most 1000 targets, got 1001"):
        covariance(predictor, xt, predictor(xt))


def test_the_limit_is_told_before_anything_is_predicted(gp, problem, monkeypatch):
    xc, yc, _ = problem
    monkeypatch.setattr(Tiled, "__call__", lambda *_: pytest.fail("predicted"))
    monkeypatch.setattr(Exact, "__call__", lambda *_: pytest.fail("predicted"))
    xt = np.linspace(0, 1, 1001)[:, None]
    with pytest.raises(ValueError, match="at most 1000 targets, got 1001"):
        joint_samples(Tiled(gp, xc, yc), xt, 1, jr.key(0))
    with pytest.raises(ValueError, match="at most 1000 targets, got 1001"):
        npax.NeuralProcessRegressor(gp).fit(xc, yc).predict(xt, return_cov=True)


def test_nearest_correlation_keeps_what_is_one(rng):
    a = np.corrcoef(rng.normal(size=(4, 50)))
    assert np.allclose(nearest_correlation(a), a)
    bent = nearest_correlation(np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]))
    assert np.allclose(np.diag(bent), 1) and np.linalg.eigvalsh(bent).min() > 0.1


def test_a_covariance_that_cannot_be_calls_nothing_certain(rng):
    """What is left of noise on correlations: the likelihood of what they describe is near that by the true ones."""
    x = np.linspace(0, 4, 40)
    true = np.exp(-np.abs(x[:, None] - x))
    noise = rng.normal(size=(40, 40)) * 0.03
    near = nearest_correlation(true + (noise + noise.T) / 2)
    drawn = np.linalg.cholesky(true) @ rng.normal(size=(40, 200))
    found, best = (multivariate_normal(cov=cov).logpdf(drawn.T).mean() for cov in (near, true))
    assert best - 15 < found < best
    singular = nearest_correlation(np.ones((5, 5)))
    assert np.allclose(singular, 1, atol=1e-5) and np.isfinite(np.linalg.cholesky(singular)).all()


def test_autoregressive_samples_of_a_gp_have_its_joint_distribution(gp, problem):
    xc, yc, xt = problem
    mean, cov = posterior(gp, xc, yc, xt)
    drawn = np.asarray(npax.sample(gp, xc, yc, xt, n=512, key=jr.key(0)))[:, :, 0]
    cov = cov + gp.noise**2 * np.eye(len(xt))
    error = np.sqrt(np.outer(np.diag(cov), np.diag(cov)) / 512)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(cov) / 512))
    assert np.all(np.abs(np.cov(drawn.T) - cov) < 8 * error)
    alone = np.asarray(npax.sample(gp, xc, yc, xt, n=512, key=jr.key(0), method="independent"))[:, :, 0]
    correlation = np.corrcoef(alone.T) - np.eye(9)
    assert (
        np.abs(correlation).max() < 0.25 < np.abs(cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov))) - np.eye(9)).max()
    )


@pytest.mark.parametrize("known", [False, True])
def test_autoregressive_log_prob_of_a_gp_is_its_joint_density_in_any_order(gp, problem, known, rng):
    xc, yc, xt = problem
    yt, error = np.cos(2 * xt), rng.uniform(0.0, 1.0, yc.shape) if known else None
    mean, cov = posterior(gp, xc, yc, xt, error if known else 0.0)
    truth = multivariate_normal(mean, cov + gp.noise**2 * np.eye(len(xt))).logpdf(yt[:, 0])
    found = autoregressive_log_prob(gp, xc, yc, xt, yt, key=jr.key(1), orders=3, error=error)
    assert np.allclose(found, truth, rtol=2e-3, atol=2e-2)


def test_samples_are_reproducible_and_of_the_shape_asked_for(gp, problem):
    xc, yc, xt = problem
    first, again, other = (npax.sample(gp, xc, yc, xt, n=3, key=jr.key(seed)) for seed in (0, 0, 1))
    assert first.shape == (3, 9, 1)
    old = npax.sample(gp, xc, yc, xt, n=3, key=jr.PRNGKey(0))  # a key of the older kind
    assert np.array_equal(first, old)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert npax.sample(gp, xc, yc, xt[:0], n=3, key=jr.key(0)).shape == (3, 0, 1)
    assert npax.sample(gp, xc[:0], yc[:0], xt, n=3, key=jr.key(0)).shape == (3, 9, 1)


@pytest.mark.parametrize("known", [False, True])
def test_a_sample_does_not_depend_on_those_beside_it_nor_on_the_programs_that_draw_it(
    gp, problem, known, rng, monkeypatch
):
    """Be they few or many, on one core or several, in one program or in ever larger ones, in parts or under `jit`."""
    xc, yc, xt = problem
    yc, error = np.tile(yc, (6, 1)), rng.uniform(0.0, 1.0, (6 * len(yc), 1)) if known else None
    xc, xt = rng.normal(size=(len(yc), 1)), np.linspace(-3, 3, 40)[:, None]
    noisy = type(gp)(noise=0.7)  # well conditioned: rounding errors stay small along a chain
    for noise in (True, False):
        options = {"error": error, "include_noise": noise}
        drawn = partial(npax.sample, noisy, xc, yc, xt, key=jr.key(3), **options)
        under_jit = jax.jit(lambda key, options=options: npax.sample(noisy, xc, yc, xt, 3, key=key, **options))
        expected = np.asarray(drawn(5))
        assert len(np.unique(expected[:, 0])) == 5
        assert np.allclose(drawn(3), expected[:3], atol=1e-4)
        assert np.allclose(under_jit(jr.key(3)), expected[:3], atol=1e-4)
        with monkeypatch.context() as patched:
            patched.setattr(chains, "cores", lambda: 3)
            assert np.allclose(drawn(5), expected, atol=1e-4)
            patched.setattr(chains, "WORTH", 0)
            patched.setattr(chains, "STEPS", 7)
            assert len(chains._stages(len(xc), len(xt), 5)) > 1
            assert np.allclose(drawn(5, progress=True), expected, atol=1e-4)


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 100))
def test_the_stages_of_chains_follow_each_other_and_hold_what_is_known(seen, count, n):
    stages = chains._stages(seen, count, n)
    starts, ends, rows = zip(*stages, strict=True)
    assert starts == (0, *ends[:-1]) and ends[-1] == count and min(np.diff([0, *ends])) > 0
    assert all(seen + end <= held for _, end, held in stages) and rows[-1] <= bucket(seen + count)
    assert [*rows] == sorted(set(rows))


@pytest.mark.parametrize("kind", [Exact, Tiled])
def test_a_bar_shows_how_far_joint_predictions_are_and_changes_none(gp, problem, kind, capsys, monkeypatch):
    xc, yc, xt = problem
    monkeypatch.setattr(chains, "STEPS", 3)
    quiet, shown = (kind(gp, xc, yc, progress=progress) for progress in (False, True))
    expected = joint_samples(quiet, xt, 5, jr.key(0))
    assert capsys.readouterr().err == ""
    assert np.array_equal(joint_samples(shown, xt, 5, jr.key(0)), expected)
    out = capsys.readouterr().err
    assert ("Sampling" if kind is Exact else "Covariances") in out and "100%" in out
    covariance(shown, xt, quiet(xt))
    out = capsys.readouterr().err
    assert "Covariances" in out and "100%" in out


def test_noiseless_samples_vary_less(gp, problem):
    xc, yc, xt = problem
    noisy, clean = (
        np.asarray(npax.sample(gp, xc, yc, xt, n=64, key=jr.key(0), include_noise=n))[:, :, 0] for n in (True, False)
    )
    assert clean[:, 4].std() < noisy[:, 4].std()


def test_noiseless_samples_of_a_gp_have_the_moments_of_its_function(gp, problem):
    """However many targets there are, and however noisy what the chain draws."""
    xc, yc, _ = problem
    noisy, xt = type(gp)(noise=0.7), np.linspace(-2.5, 2.5, 32)[:, None]
    mean, cov = posterior(noisy, xc[:2], yc[:2], xt)
    drawn = np.asarray(npax.sample(noisy, xc[:2], yc[:2], xt, n=512, key=jr.key(0), include_noise=False))[:, :, 0]
    variance = np.diag(cov)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 5 * np.sqrt(variance / 512))
    assert np.all(np.abs(drawn.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / 512))


def test_a_noiseless_sample_has_one_value_at_each_place(gp, problem):
    xc, yc, xt = problem
    again = np.concatenate([xt, xt[::-1]])
    for method in ("ar", "independent"):
        noisy, clean, once = (
            npax.sample(gp, xc, yc, x, n=4, key=jr.key(0), method=method, include_noise=noise)
            for x, noise in ((again, True), (again, False), (xt, False))
        )
        assert np.array_equal(clean, np.concatenate([once, once[:, ::-1]], axis=1))
        assert not np.any(noisy[:, : len(xt)] == noisy[:, len(xt) :][:, ::-1])


def test_without_a_noise_of_its_own_a_model_draws_observations(problem):
    xc, yc, xt = problem
    model = untrained.untrained(lambda key: npax.CNP(1, 1, encoder=(16,), size=16, decoder=(16,), key=key))
    noisy, clean = (npax.sample(model, xc, yc, xt, n=4, key=jr.key(0), include_noise=n) for n in (True, False))
    assert np.array_equal(noisy, clean)


def test_samples_of_predictors_in_the_users_units(gp, problem):
    xc, yc, xt = problem
    for kind in (Exact, Tiled):
        predictor = kind(gp, xc, 100 * yc + 1000)
        prediction = predictor(xt)
        drawn = joint_samples(predictor, xt, 128, jr.key(0))
        assert drawn.shape == (128, 9, 1)
        assert np.all(np.abs(drawn.mean(axis=0) - prediction.mean) < 6 * np.sqrt(prediction.variance / 128))
        assert np.all(np.abs(drawn.var(axis=0) / prediction.variance - 1) < 0.6)


def test_the_number_of_samples_may_be_numpys(rng):
    x, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 1))
    model, sample = MODELS["np"](jr.key(0)), inspect.unwrap(npax.sample)
    assert sample(model, x, y, x, n=np.int64(2), key=jr.key(0)).shape == (2, 5, 1)


def test_refusals(small, problem):
    xc, yc, xt = problem
    for options, message in (
        ({"method": "latent"}, "TNPKR has none"),
        ({"method": "gibbs"}, "'gibbs'"),
        ({"n": 0}, "at least 1; got 0"),
        ({"n": 2.0}, "`n` must be a whole number, at least 1; got 2.0"),
    ):
        with pytest.raises(ValueError, match=message):
            inspect.unwrap(npax.sample)(small, xc, yc, xt, key=jr.key(0), **options)


def test_chains_are_of_models_keys_and_numbers(small, problem):
    xc, yc, xt = problem
    score = partial(inspect.unwrap(autoregressive_log_prob), yt=yc[:2])
    for function in (inspect.unwrap(npax.sample), score):
        for model in ("gp-universal", npax.NeuralProcessRegressor()):
            with pytest.raises(TypeError, match=r"`model` must be a model, such as .* Estimators have `sample_y`"):
                function(model, xc, yc, xt=xt[:2], key=jr.key(0))
        with pytest.raises(TypeError, match=r"`key` must be a key, such as `jax\.random\.key\(3\)`; got 3"):
            function(small, xc, yc, xt=xt[:2], key=3)
        with pytest.raises(TypeError, match="for one task of numbers at a time, not within `jit`"):
            jax.vmap(partial(function, small, xc, xt=xt[:2], key=jr.key(0)))(jnp.zeros((2, *np.shape(yc))))


def test_a_models_own_joint_samples_are_those_of_the_predictor(problem):
    """TNP-ND's, and no chain of its marginals."""
    xc, yc, xt = problem
    model = MODELS["tnp-nd"](jr.key(0))
    xc, xt = (np.tile(x, (1, model.dx)) for x in (xc, xt))
    predictor = Exact(model, xc, np.tile(yc, (1, model.likelihood.dy)))
    context, key = predictor.contexts[0], jr.split(jr.key(1), 1)[0]
    seen = context.x[context.mask], context.y[context.mask], to_model(model, predictor.frame(xt))
    own, chain = (npax.sample(model, *seen, 3, key=key, method=method) for method in ("auto", "ar"))
    found = joint_samples(predictor, xt, 3, jr.key(1))
    assert np.allclose(found, context.standardiser.undo(np.asarray(own, float)), atol=1e-6)
    assert not np.allclose(own, chain, atol=1e-2)


@pytest.mark.parametrize("method", ["auto", "ar"])
def test_rows_must_match(small, rng, method):
    xc, yc = rng.normal(size=(5, 3)), rng.normal(size=(4, 1))
    with pytest.raises(ValueError, match="`yc` must have as many rows as `xc`, 5; got 4"):
        npax.sample(small, xc, yc, xc, key=jr.key(0), method=method)
    with pytest.raises(ValueError, match="`yt` must have as many rows as `xt`, 5; got 4"):
        autoregressive_log_prob(small, xc[:4], yc, xc, yc, key=jr.key(0))


def test_shapes_must_match(small, rng):
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(5, 1))
    for xc, yc, xt, words in (
        (x[:, 0], y, x, r"`xc` must have the shape \[rows, columns\].*got \(5,\)"),
        (x, y, x[0], r"`xt` must have the shape \[rows, columns\].*got \(3,\)"),
        (x, y[:, 0], x, r"`yc` must have the shape \[rows, 1\].*got \(5,\)"),
        (x, x, x, r"`yc` must have the shape \[rows, 1\].*got \(5, 3\)"),
    ):
        with pytest.raises(ValueError, match=words):
            npax.sample(small, xc, yc, xt, key=jr.key(0))
    with pytest.raises(ValueError, match=r"`yt` must have the shape \[rows, 1\]"):
        autoregressive_log_prob(small, x, y, x, y[:, 0], key=jr.key(0))


def test_a_model_on_a_grid_is_asked_beyond_its_extent(problem):
    """The chain's context spans the targets too: the grid is made wide enough for both, with the same weights."""
    xc, yc, xt = problem
    narrow = npax.ConvCNP(1, 1, spacing=0.25, extent=4.0, blocks=(1, 1), size=8, hidden=16, key=jr.key(0))
    wide = narrow.covering(8.0)
    options = {"key": jr.key(1), "method": "ar"}
    drawn = [npax.sample(model, xc, yc, xt, 2, **options) for model in (narrow, wide)]
    assert np.array_equal(*drawn) and np.isfinite(drawn[0]).all()
    found = [autoregressive_log_prob(model, xc, yc, xt, 0.1 * xt, key=jr.key(1)) for model in (narrow, wide)]
    assert np.array_equal(*found) and np.isfinite(found[0]).all()
    predictor = Exact(narrow, xc, yc)
    assert np.isfinite(covariance(predictor, 3 * xt, predictor(3 * xt))).all()
    with pytest.raises(Exception, match="spans more than 4"):
        jax.block_until_ready(eqx.filter_jit(narrow)(np.float32(xt), np.float32(xt), np.float32(xt)).mean)


@pytest.mark.parametrize("name", ["xc", "yc", "xt", "yt"])
def test_missing_numbers_are_refused_by_name(small, rng, name):
    arrays = {key: rng.normal(size=(4, small.dx if key[0] == "x" else 1)) for key in ("xc", "yc", "xt", "yt")}
    arrays[name][2, 0] = np.nan
    with pytest.raises(ValueError, match=f"`{name}` must be finite, got NaN or infinity in row 2"):
        autoregressive_log_prob(small, *arrays.values(), key=jr.key(0))


def test_many_samples_of_a_joint_model_are_groups_of_one_program(rng, monkeypatch):
    """Memory is that of a group; numbers of samples compile nothing of their own."""
    model = untrained.untrained(MODELS["np"])
    xc, xt = rng.normal(size=(5, model.dx)), rng.normal(size=(3, model.dx))
    yc, sides = rng.normal(size=(5, model.likelihood.dy)), []
    own = autoregressive._own

    def counted(*arguments):
        sides.append(arguments[5])
        return own(*arguments)

    monkeypatch.setattr(autoregressive, "_own", counted)
    drawn = npax.sample(model, xc, yc, xt, n=130, key=jr.key(0))
    assert drawn.shape == (130, 3, model.likelihood.dy) and sides == [64, 64, 64]
    assert len(np.unique(np.asarray(drawn)[:, 0, 0])) == 130
