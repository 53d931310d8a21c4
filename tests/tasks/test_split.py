"""How observations become tasks."""

import inspect

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from npax.tasks.split import check_sizes, split


def drawn(valid, *, low, high, nt, tasks):
    n = len(valid)
    x = jnp.arange(n, dtype=jnp.float32)[:, None]
    y = jnp.where(valid[:, None], 10 * x, jnp.nan)

    def one(key):
        return split(key, x, y, valid, low=low, high=high, nt=nt)

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(one))(jr.split(jr.key(0), tasks)))


def test_context_and_targets_share_the_points_out():
    batch = drawn(jnp.ones(9, bool), low=2, high=6, nt=7, tasks=2000)
    assert np.array_equal(batch.yc, 10 * batch.xc) and np.array_equal(batch.yt, 10 * batch.xt)
    sizes = batch.mask_c.sum(1)
    assert np.array_equal(sizes + batch.mask_t.sum(1), np.full(2000, 9))
    assert scipy.stats.chisquare(np.bincount(sizes, minlength=7)[2:]).pvalue > 1e-3
    for task in range(50):
        context = batch.xc[task, :, 0][batch.mask_c[task]]
        targets = batch.xt[task, :, 0][batch.mask_t[task]]
        assert np.array_equal(np.sort(np.concatenate([context, targets])), np.arange(9))
    first = np.bincount(batch.xc[:, 0, 0].astype(int), minlength=9)
    assert scipy.stats.chisquare(first).pvalue > 1e-3


def test_what_is_missing_is_neither_context_nor_target():
    valid = jnp.array([True, False, True, True, False, True, True])
    batch = drawn(valid, low=1, high=6, nt=3, tasks=200)
    assert np.isfinite(batch.yc).all() and np.isfinite(batch.yt).all()
    for x, mask in ((batch.xc, batch.mask_c), (batch.xt, batch.mask_t)):
        assert np.asarray(valid)[x[..., 0].astype(int)[mask]].all()
    sizes, targets = batch.mask_c.sum(1), batch.mask_t.sum(1)
    assert sizes.max() == 4 and targets.min() == 1 and np.array_equal(targets, np.minimum(5 - sizes, 3))


def test_without_points_there_is_an_empty_task():
    batch = drawn(jnp.zeros(4, bool), low=1, high=2, nt=2, tasks=3)
    assert not batch.mask_c.any() and not batch.mask_t.any() and np.isfinite(batch.yt).all()


@pytest.mark.parametrize("sizes", [(2, 1, None), (-1, 3, None), (0, 8, None), (0, 4, 9), (0, 4, 0)])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(ValueError, match=r"low|nt"):
        check_sizes(*sizes, 8)
    with pytest.raises(ValueError, match="`high` must be a whole number"):
        inspect.unwrap(check_sizes)(0, 5.5, None, 8)
    assert check_sizes(2, 4, None, 8) == 6
