"""Translation equivariant attention and its models against the equations of the paper, pair by pair in float64."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from laws import MODELS, close, draw_data, normal

import npax
from npax.attention import translation_equivariant_attention
from npax.attention.translation_equivariant import FEW
from npax.blocks import PairNetwork

HEADS, D, NQ, NK, DX = 3, 4, 7, 6, 2


def as64(tree):
    return jax.tree.map(lambda a: np.asarray(a, np.float64), tree)


def network64(network, row):
    for layer in network.layers[:-1]:
        row = np.maximum(row @ layer.weight + layer.bias, 0)
    return row @ network.layers[-1].weight


def slowly(q, k, v, rho, phi, xq, xk, mask):
    """TE eq. 7, 8 and 10 in loops; only the keys under a `True` exist."""
    keys = np.flatnonzero(mask)
    out, moved = np.zeros((q.shape[0], q.shape[1], v.shape[2])), xq.copy()
    for n in range(q.shape[1]):
        if len(keys) == 0:
            continue
        logits = []
        for m in keys:
            products = [q[h, n] @ k[h, m] / np.sqrt(q.shape[2]) for h in range(len(q))]
            logits.append(network64(rho, np.concatenate([products, xq[n] - xk[m]])))
        alpha = np.exp(logits) / np.exp(logits).sum(axis=0)
        for i, m in enumerate(keys):
            out[:, n] += alpha[i][:, None] * v[:, m]
            if phi is not None:
                moved[n] += (xq[n] - xk[m]) * network64(phi, alpha[i]).item() / len(keys)
    return out, moved


@pytest.fixture
def operands(getkey):
    q, k, v = (normal(getkey(), (HEADS, n, D)) for n in (NQ, NK, NK))
    rho = PairNetwork(HEADS + DX, 16, HEADS, key=getkey())
    phi = PairNetwork(HEADS, 16, 1, key=getkey())
    return q, k, v, rho, phi, normal(getkey(), (NQ, DX)), normal(getkey(), (NK, DX))


@eqx.filter_jit
def attention(operands, mask=None, **block):
    q, k, v, rho, phi, xq, xk = operands
    return translation_equivariant_attention(q, k, v, rho, phi, xq=xq, xk=xk, mask=mask, **block)


MASKS = {"all": np.ones(NK, bool), "some": np.arange(NK) % 3 != 1, "none": np.zeros(NK, bool)}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("moves", [True, False])
def test_every_pair_as_in_the_paper(operands, mask, moves):
    operands = operands if moves else (*operands[:4], None, *operands[5:])
    out, moved = attention(operands, mask)
    true_out, true_moved = slowly(*as64(operands), mask)
    assert reference.relative(out, true_out) < 1e-5
    assert reference.relative(moved, true_moved) < 1e-5
    assert (moves and mask.any()) == (not np.array_equal(moved, operands[5]))


@pytest.mark.parametrize("mask", [MASKS["all"], MASKS["some"]], ids=["all", "some"])
def test_gradients_are_the_slopes_of_the_slow_form(operands, mask, getkey):
    """Along a random direction in all operands, by central differences in float64."""
    directions = jax.tree.map(lambda a: normal(getkey(), a.shape), operands)
    weights = [np.asarray(normal(getkey(), shape), np.float64) for shape in ((HEADS, NQ, D), (NQ, DX))]

    def total(results):
        return sum((w * r).sum() for w, r in zip(weights, results, strict=True))

    def slope(part):
        def at(step):
            moved = jax.tree.map(lambda a, d: a + step * d, as64(operands[part]), as64(directions[part]))
            return total(slowly(*as64(operands[:part]), moved, *as64(operands[part + 1 :]), mask))

        return (at(1e-6) - at(-1e-6)) / 2e-6

    @jax.jit
    @jax.grad
    def gradients(operands):
        results = attention(operands, jnp.asarray(mask))
        return sum(jnp.sum(jnp.float32(w) * r) for w, r in zip(weights, results, strict=True))

    for part, (g, d) in enumerate(zip(gradients(operands), directions, strict=True)):
        along = sum(np.sum(a * b) for a, b in zip(jax.tree.leaves(as64(g)), jax.tree.leaves(as64(d)), strict=True))
        assert abs(along - slope(part)) < 2e-4 * max(1, abs(slope(part)))


def test_padded_points_move_nothing(operands):
    """A key under the mask counts neither in the sum nor in N, whatever it holds."""
    q, k, v, rho, phi, xq, xk = jax.tree.map(np.asarray, operands)
    mask = MASKS["some"]
    short = attention((q, k[:, mask], v[:, mask], rho, phi, xq, xk[mask]), np.ones(sum(mask), bool))
    for junk in np.float32([np.nan, np.inf, 1e30]):
        k, v, xk = (np.where(mask[:, None], a, junk) for a in (k, v, xk))
        assert close(attention((q, k, v, rho, phi, xq, xk), mask), short)
    assert not close(attention(operands, MASKS["all"]), short)


@eqx.filter_jit
def gradients_and_values(operands, mask, block):
    def loss(operands):
        out, moved = attention(operands, mask, block=block)
        return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.sin(moved)), (out, moved)

    return jax.grad(loss, has_aux=True)(operands)


@pytest.mark.parametrize("block", [1, 2 * NK, 5 * NK])
def test_blocks_of_queries_change_nothing(operands, block):
    mask = MASKS["some"]
    assert close(gradients_and_values(operands, mask, block), gradients_and_values(operands, mask, 10**6))


@pytest.mark.parametrize("count", [0, 1, 20, 21, 60])
def test_keys_that_do_not_count_may_be_left_out(count, getkey):
    """Of many keys the networks see as few as hold all that count: the numbers are those of all pairs."""
    nk = FEW + 20
    q, k, v = (normal(getkey(), (HEADS, n, D)) for n in (NQ, nk, nk))
    rho, phi = PairNetwork(HEADS + DX, 8, HEADS, key=jr.key(0)), PairNetwork(HEADS, 8, 1, key=jr.key(1))
    operands = q, k, v, rho, phi, normal(getkey(), (NQ, DX)), normal(getkey(), (nk, DX))
    mask = jr.permutation(getkey(), np.arange(nk) < count)
    assert close(gradients_and_values(operands, mask, NQ * nk), gradients_and_values(operands, mask, 2 * NQ * nk))


def loss(arrays, mask, networks, block):
    q, k, v, xq, xk = arrays
    out, moved = attention((q, k, v, *networks, xq, xk), mask, block=block)
    return jnp.sum(jnp.sin(out)) + jnp.sum(jnp.sin(moved))


@eqx.filter_jit
@eqx.filter_value_and_grad
def together(operands, masks, block):
    return jnp.sum(jax.vmap(loss, (0, 0, None, None))(operands[0], masks, operands[1], block))


@eqx.filter_jit
@eqx.filter_value_and_grad
def looped(operands, masks):
    arrays, networks = operands
    return sum(loss([a[i] for a in arrays], masks[i], networks, 10**6) for i in range(len(masks)))


@pytest.mark.parametrize("block", [1, 2 * NQ * NK, 10**6])
def test_the_tasks_of_a_batch_take_turns_and_change_nothing(operands, block, getkey):
    """Four tasks one by one, by twos and at once; networks are shared, all else is each task's own."""
    batch = [normal(getkey(), (4, *a.shape)) for a in operands[:3] + operands[5:]]
    masks = np.arange(NK) < np.array([[NK], [3], [1], [0]])
    both = batch, operands[3:5]
    assert close(together(both, masks, block), looped(both, masks))


def test_memory_is_that_of_a_block(operands):
    """Gradients for 8 tasks of 512 by 512 points: one array of hidden units of all pairs would take 134 MB."""
    networks = operands[3:5]

    def loss(arrays, networks):
        q, k, v, xq, xk = arrays
        out, moved = attention((q, k, v, *networks, xq, xk), block=2**12)
        return jnp.sum(out) + jnp.sum(moved)

    arrays = [jax.ShapeDtypeStruct((8, HEADS, 512, D), jnp.float32)] * 3 + [
        jax.ShapeDtypeStruct((8, 512, DX), jnp.float32)
    ] * 2
    step = jax.jit(jax.grad(lambda a, n: jnp.sum(jax.vmap(loss, (0, None))(a, n)), argnums=(0, 1)))
    assert step.lower(arrays, networks).compile().memory_analysis().temp_size_in_bytes < 30e6


def test_an_impossible_block_is_refused(operands):
    with pytest.raises(ValueError, match="`block` must be a whole number, at least 1; got 0"):
        attention(operands, block=0)


@pytest.mark.parametrize("name", ["te-tnp", "te-pt-tnp"])
def test_targets_know_of_their_places_by_the_context_alone(name, getkey):
    """Without a context all targets get the same prediction; two observations tell them apart."""
    model = MODELS[name](getkey())
    data = draw_data(model, getkey(), nc=2)
    mean = eqx.filter_jit(lambda model, mask: model(data.xc, data.yc, data.xt, mask).mean)
    prior, posterior = (np.asarray(mean(model, np.full(2, seen))) for seen in (False, True))
    assert (prior == prior[0]).all()
    assert (np.abs(posterior[1:] - posterior[0]).max(axis=1) > 0).all()


def test_pseudo_locations_are_averages_that_follow_the_data(getkey):
    """TE eq. 11, against numpy."""
    model = MODELS["te-pt-tnp"](getkey())
    u, place = model.pseudo_tokens, eqx.filter_jit(model.pseudo_locations)
    z, x, mask = normal(getkey(), (9, 16)), normal(getkey(), (9, 1)), np.arange(9) < 6
    query, key = (as64(linear.weight) for linear in model.pseudo_locations.psi)
    logits = as64(u) @ query @ (as64(z)[:6] @ key).T / 4
    psi = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    v, offset = np.asarray(place(u, z, x, mask)), np.asarray(model.pseudo_locations.offset)
    assert reference.relative(v, as64(offset) + psi @ as64(x)[:6]) < 1e-5
    assert close(place(u, z, x + 2.0, mask), v + 2.0)
    assert np.array_equal(place(u, z, x, np.zeros(9, bool)), offset)


def test_without_location_updates_pseudo_points_surround_the_mean(getkey):
    model = MODELS["te-pt-tnp-still"](getkey())
    z, x, mask = normal(getkey(), (9, 16)), normal(getkey(), (9, 2)), np.arange(9) < 6
    v = eqx.filter_jit(model.pseudo_locations)(model.pseudo_tokens, z, x, mask)
    assert reference.relative(v, as64(model.pseudo_locations.offset) + as64(x)[:6].mean(axis=0)) < 1e-5


def test_locations_move_unless_told_otherwise(getkey):
    """The memories of the second block hold moved locations; with `update_locations=False` the context's own."""
    for update in (True, False):
        model = npax.TETNP(
            2, 1, blocks=3, size=16, heads=2, head_size=8, hidden=32, update_locations=update, key=getkey()
        )
        data = draw_data(model, getkey())
        memories, last = eqx.filter_jit(model.condition)(data.xc, data.yc, data.mask)
        first, second, third, own = map(np.asarray, (*memories.x, last.x, data.xc))
        assert (first == own).all()
        assert (second == own).all() == (third == own).all() == (not update)


@pytest.mark.parametrize("model", [npax.TETNP, npax.TEPTTNP])
def test_one_block_is_enough(model, getkey):
    model = model(1, 1, blocks=1, size=16, heads=2, head_size=8, hidden=32, key=getkey())
    data = draw_data(model, getkey())
    mean = eqx.filter_jit(lambda model, yc: model(data.xc, yc, data.xt).mean)
    assert not close(mean(model, data.yc), mean(model, -np.asarray(data.yc)))


@pytest.mark.parametrize(
    ("make", "flag"),
    [
        (npax.TETNP, "update_locations"),
        (npax.TEPTTNP, "update_locations"),
        (npax.TNPKR, "locations"),
        (npax.TNPKR, "errors"),
    ],
)
def test_flags_are_true_or_false(make, flag):
    """A text such as "no" would be taken for yes."""
    with pytest.raises(ValueError, match=f"`{flag}` must be True or False, got 'no'"):
        inspect.unwrap(make.__init__)(object.__new__(make), 1, 1, **{flag: "no"}, key=jr.key(0))
