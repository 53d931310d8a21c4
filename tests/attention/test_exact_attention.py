"""Dense, scan and fused attention against a float64 reference written in numpy; the kernels in interpret mode."""

import functools
import importlib.util
import inspect
from importlib.metadata import version
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import reference
from hypothesis import Phase, given, settings, strategies as st
from jax import Array
from laws import BIASES, HEADS, TINY, normal

import npax
import npax.attention.fused as of_fused
from npax.bias import AbstractBias
from npax.bias.tile import tile

BLOCK, D, DV, DX = 16, 6, 5, 2
NQ, NK = 37, 53


def scan(q, k, v, **kwargs):
    return npax.scan_attention(q, k, v, block=BLOCK, **kwargs)


def fused(q, k, v, **kwargs):
    return npax.fused_attention(q, k, v, block=2 * BLOCK, step=BLOCK, interpret=True, **kwargs)


ATTENTIONS = {"dense": npax.dense_attention, "scan": scan, "fused": fused}
WITH_TILE = [name for name in BIASES if not name.startswith("kernel")]


@eqx.filter_jit
def value_and_gradients(attend, operands, mask, weight):
    def total(operands):
        q, k, v, bias, xq, xk = operands
        out = attend(q, k, v, bias=bias, xq=xq, xk=xk, mask=mask)
        return jnp.sum(weight * out), out

    (_, out), grads = eqx.filter_value_and_grad(total, has_aux=True)(operands)
    return out, grads


def draw(key, nq=NQ, nk=NK, bias=None):
    keys = jr.split(key, 7)
    shapes = [(HEADS, nq, D), (HEADS, nk, D), (HEADS, nk, DV), (nq, DX), (nk, DX), (HEADS, nq, DV)]
    q, k, v, xq, xk, weight = (normal(key, shape) for key, shape in zip(keys, shapes, strict=False))
    mask = jax.device_put(np.asarray(normal(keys[6], (nk,))) > -0.5)
    return (q, k, v, bias, xq, xk), mask, weight


def truth(operands, mask, weight):
    return reference.attention(*operands, np.asarray(mask), weight)


@functools.cache
def case(bias):
    """Operands with the bias of that name, mask and weights, and the truth: for several attentions."""
    key, bias_key = jr.split(jr.key(0))
    drawn = draw(key, bias=BIASES.get(bias, lambda key: None)(bias_key))
    return drawn, truth(*drawn)


def assert_equal(found, true, tolerance=1e-5):
    (out, grads), (true_out, true_grads) = found, true
    assert out.dtype == jnp.float32
    assert reference.relative(out, true_out) < tolerance
    for got, true in zip(grads, true_grads, strict=True):
        assert got is None or reference.relative(flat(got), flat(true)) < tolerance


def flat(tree):
    """All gradients of one operand, side by side: a parameter whose gradient cancels is judged among its kin."""
    return np.concatenate([np.zeros(0), *(np.ravel(a) for a in jax.tree.leaves(tree) if eqx.is_array(a))])


@pytest.mark.parametrize("bias", [*BIASES, "none"])
def test_scan_equals_the_float64_reference_for_every_bias(bias):
    drawn, true = case(bias)
    assert_equal(value_and_gradients(scan, *drawn), true)


@pytest.mark.parametrize("bias", ["sum", "none"])
def test_scan_in_blocks_much_wider_than_a_head_equals_the_float64_reference(bias):
    drawn, true = case(bias)
    assert_equal(value_and_gradients(functools.partial(npax.scan_attention, block=5 * D), *drawn), true)


@pytest.mark.parametrize("bias", [*WITH_TILE, "none"])
def test_fused_equals_the_float64_reference_for_every_bias_with_a_tile(bias):
    drawn, true = case(bias)
    assert_equal(value_and_gradients(fused, *drawn), true)


@pytest.mark.parametrize("bias", ["sum", "none"])
def test_dense_equals_the_float64_reference(bias):
    drawn, true = case(bias)
    assert_equal(value_and_gradients(npax.dense_attention, *drawn), true)


@settings(max_examples=4, deadline=None, derandomize=True, phases=[Phase.generate])
@given(nq=st.integers(2, 50), nk=st.integers(BLOCK + 1, 50), seed=st.integers(0, 2**31 - 1))
def test_equals_the_float64_reference_at_every_size(nq, nk, seed):
    key, bias_key = jr.split(jr.key(seed))
    drawn = draw(key, nq, nk, BIASES["geometric"](bias_key))
    assert_equal(value_and_gradients(scan, *drawn), truth(*drawn))


@pytest.fixture(scope="module", params=[(1, 40), (20, 0), (33, 1)], ids=str)
def few(request):
    nq, nk = request.param
    operands, _, weight = draw(jr.key(0), nq, nk, BIASES["geometric"](jr.key(1)))
    return operands, truth(operands, np.ones(nk, bool), weight)


@pytest.mark.parametrize("attend", ATTENTIONS.values(), ids=ATTENTIONS)
def test_smallest_sizes(attend, few):
    (q, k, v, bias, xq, xk), (true, _) = few
    assert reference.relative(eqx.filter_jit(attend)(q, k, v, bias=bias, xq=xq, xk=xk), true) < 1e-5


class Shift(AbstractBias):
    """The same number on every logit."""

    by: Array

    def __init__(self, by):
        self.by = jnp.full(HEADS, by)

    def __call__(self, xq, xk):
        return jnp.broadcast_to(self.by[:, None, None], (HEADS, xq.shape[0], xk.shape[0]))


@tile.register(Shift)
def _(bias):
    return lambda xq, xk, tiles: [t + by for t, by in zip(tiles, bias.by[0], strict=True)]


def draw_on_lattice(key):
    """Operands whose logits are multiples of 1/512, so that adding 10,000 to them rounds nothing."""
    (q, k, v, _, xq, xk), mask, weight = draw(key)
    q, k = (jax.device_put(np.round(8 * np.asarray(a)[..., :4]) / 8) for a in (q, k))
    return (q, k, v, None, xq, xk), mask, weight


def with_bias(operands, bias):
    return (*operands[:3], bias, *operands[4:])


@pytest.mark.parametrize("by", [1e4, -1e4])
@pytest.mark.parametrize("attend", ATTENTIONS.values(), ids=ATTENTIONS)
def test_a_shift_of_all_logits_changes_nothing(attend, by, getkey):
    operands, mask, weight = draw_on_lattice(getkey())
    out, (d_q, d_k, d_v, *_) = value_and_gradients(attend, with_bias(operands, Shift(by)), mask, weight)
    true, (true_q, true_k, true_v, *_) = truth(operands, mask, weight)
    assert reference.relative(out, true) < 1e-5
    rounding = np.spacing(np.float32(abs(by)))
    for got, want in ((d_q, true_q), (d_k, true_k), (d_v, true_v)):
        assert reference.relative(got, want) < 2 * rounding


@pytest.mark.parametrize("attend", [scan, fused], ids=["scan", "fused"])
def test_low_logits_beside_a_whole_block_of_hidden_keys(attend, getkey):
    operands, _, weight = draw_on_lattice(getkey())
    mask = jax.device_put(np.arange(NK) < BLOCK)
    out, grads = value_and_gradients(attend, with_bias(operands, Shift(-1e4)), mask, weight)
    true, true_grads = truth(operands, mask, weight)
    assert reference.relative(out, true) < 1e-5
    for got, want in zip(grads[:3], true_grads[:3], strict=True):
        assert reference.relative(got, want) < 2 * np.spacing(np.float32(1e4))


def test_a_softmax_without_its_maximum_fails_under_the_same_shift(getkey):
    (q, k, v, *_), _, _ = draw_on_lattice(getkey())

    @jax.jit
    def average(q, k, v):
        p = jnp.exp(jnp.einsum("hqd,hkd->hqk", q, k) / 2 + 1e4)
        return jnp.einsum("hqk,hkd->hqd", p, v) / jnp.sum(p, axis=-1, keepdims=True)

    assert not np.isfinite(average(q, k, v)).any()


@pytest.fixture(scope="module")
def poisoned():
    """Operands that are not finite under the mask, and the truth."""
    ((q, k, v, bias, xq, xk), _, weight), _ = case("sum")
    hidden = np.arange(NK) % 3 == 0
    poison = np.where(np.arange(NK) % 2 == 0, np.float32("nan"), np.float32("inf"))[:, None]
    k, v, xk = (jax.device_put(np.where(hidden[:, None], poison, a)) for a in (k, v, xk))
    drawn = (q, k, v, bias, xq, xk), jax.device_put(~hidden), weight
    return drawn, truth(*drawn)


@pytest.mark.parametrize("attend", ATTENTIONS.values(), ids=ATTENTIONS)
def test_rows_without_any_key_give_zeros_and_junk_under_the_mask_stays_there(attend, poisoned):
    (operands, mask, weight), true = poisoned
    assert_equal(value_and_gradients(attend, operands, mask, weight), true)
    out, grads = value_and_gradients(attend, operands, jnp.zeros(NK, bool), weight)
    assert all((np.asarray(a) == 0).all() for a in jax.tree.leaves((out, grads)))


def test_changed_values_change_the_output_of_queries_that_see_them(getkey):
    (q, k, v, *_), _, _ = draw(getkey())
    last = np.arange(NK) == NK - 1
    read = eqx.filter_jit(lambda v, mask: scan(q, k, v, mask=mask))

    def change(mask):
        return np.asarray(read(v + np.float32(last[:, None]), mask)) - np.asarray(read(v, mask))

    assert (change(None) > 0).all()
    assert (change(~last) == 0).all()


@pytest.mark.parametrize("attend", [scan, fused], ids=["scan", "fused"])
def test_batches_by_vmap_equal_a_loop(attend, getkey):
    bias = BIASES["geometric"](getkey())
    draws = [draw(key) for key in jr.split(getkey(), 3)]
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *draws)

    def of_one(operands, mask, weight):
        return value_and_gradients(attend, with_bias(operands, bias), mask, weight)

    out, grads = jax.tree.map(np.asarray, jax.vmap(of_one)(*batch))
    for i, one in enumerate(draws):
        one_out, one_grads = of_one(*one)
        assert reference.relative(out[i], one_out) < 1e-5
        for got, want in zip(grads, one_grads, strict=True):
            assert reference.relative(flat(jax.tree.map(lambda a, i=i: a[i], got)), flat(want)) < 1e-5


@pytest.mark.parametrize("wanted", [0, 3, 4, 5], ids=["q", "bias", "xq", "xk"])
@pytest.mark.parametrize("attend", [scan, fused], ids=["scan", "fused"])
def test_the_gradient_of_one_operand_alone_is_the_same(attend, wanted, getkey):
    operands, mask, weight = draw(getkey(), bias=BIASES["geometric"](getkey()))
    _, grads = value_and_gradients(attend, operands, mask, weight)

    def total(operand):
        q, k, v, bias, xq, xk = (*operands[:wanted], operand, *operands[wanted + 1 :])
        return jnp.sum(weight * attend(q, k, v, bias=bias, xq=xq, xk=xk, mask=mask))

    alone = eqx.filter_jit(eqx.filter_grad(total))(operands[wanted])
    assert reference.relative(flat(alone), flat(grads[wanted])) < 1e-6


def test_memory_of_32768_points_squared_stays_bounded(getkey):
    n, heads, d = 32_768, 4, 32
    bias = npax.GeometricRBFBias(heads, key=getkey())

    def loss(q, k, v, bias, x):
        return jnp.sum(npax.scan_attention(q, k, v, bias=bias, xq=x, xk=x))

    rows = jax.ShapeDtypeStruct((heads, n, d), jnp.float32)
    step = jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3, 4)))
    memory = step.lower(rows, rows, rows, bias, jax.ShapeDtypeStruct((n, 2), jnp.float32)).compile().memory_analysis()
    total = memory.temp_size_in_bytes + memory.output_size_in_bytes + memory.argument_size_in_bytes
    assert total < 1.5e9


@pytest.mark.parametrize("attend", [npax.dense_attention, scan, fused], ids=["dense", "scan", "fused"])
@pytest.mark.parametrize("bias", ["geometric", "rbf-network"])
def test_operands_of_16_bits_are_summed_in_32(attend, bias, getkey):
    """All of them: a bias in 16 bits is that of its rounded parameters."""
    operands, mask, weight = draw(getkey(), bias=BIASES[bias](getkey()))
    short = jax.tree.map(lambda a: jax.device_put(np.asarray(a).astype(jnp.bfloat16)), (operands, weight))
    out, grads = value_and_gradients(attend, short[0], mask, short[1])
    operands, weight = jax.tree.map(lambda a: np.asarray(a).astype(np.float32), short)
    true, true_grads = truth(operands, mask, weight)
    assert {a.dtype for a in jax.tree.leaves((out, grads))} == {jnp.dtype(jnp.bfloat16)}
    eps = 2.0**-8
    assert reference.relative(out, true) < eps
    for got, want in zip(grads, true_grads, strict=True):
        got = jax.tree.map(lambda a: np.asarray(a).astype(np.float32), got)
        assert reference.relative(flat(got), flat(want)) < 4 * eps


def test_fused_attention_on_a_device_without_kernels_is_the_scan(getkey):
    (q, k, v, _, xq, xk), mask, weight = draw(getkey(), 20, 33)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def total(operands, attention, mask):
        q, k, v, xq, xk, bias = operands
        return jnp.sum(weight * attention.recall(q, xq, attention.memorise(k, v, xk, mask), bias))

    for name in ("geometric", "kernel-stationary"):
        operands = (q, k, v, xq, xk, BIASES[name](getkey()))
        fused, scan = (total(operands, attention(), mask) for attention in (npax.FusedAttention, npax.ScanAttention))
        assert eqx.tree_equal(*jax.tree.map(np.asarray, (fused, scan)))


@pytest.mark.parametrize(("heads", "group"), [(4, 1), (4, 2), (4, 4), (3, 2)])
def test_heads_are_served_in_groups(heads, group, getkey):
    """As many programs as groups, each with its own heads' operands and parameters."""
    bias = npax.GeometricRBFBias(heads, bases=4, key=getkey()) + npax.RBFNetworkBias(heads, bases=2, key=getkey())
    q, k, v, xq, xk = (
        normal(getkey(), shape) for shape in ((heads, 20, D), (heads, 40, D), (heads, 40, DV), (20, DX), (40, DX))
    )
    drawn = (q, k, v, bias, xq, xk), None, normal(getkey(), (heads, 20, DV))
    found, true = (
        value_and_gradients(attend, *drawn) for attend in (functools.partial(fused, group=group), npax.dense_attention)
    )
    assert_equal(found, true)


def gpus(monkeypatch, *capabilities):
    """A process with such GPUs, as far as the choice of kernels asks."""
    devices = [SimpleNamespace(compute_capability=capability) for capability in capabilities]
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: devices)


@pytest.mark.parametrize(
    ("capabilities", "run"),
    [(["8.0"], True), (["9.0", "12.0"], True), (["7.5"], False), (["9.0", "7.5"], False), (["gfx942"], False)],
)
def test_kernels_run_on_ampere_and_later(capabilities, run, monkeypatch):
    assert not of_fused.runs_here()
    gpus(monkeypatch, *capabilities)
    assert of_fused.runs_here() is run
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not of_fused.runs_here(), "a JAX whose Pallas has no Triton"


@pytest.mark.skipif(not version("jaxlib").startswith("0.10."), reason="later versions lower for GPUs only beside one")
@pytest.mark.parametrize(
    ("attention", "dtype", "kernels"),
    [
        (npax.FusedAttention(), jnp.float32, 3),
        (npax.FusedAttention(), jnp.bfloat16, 3),
        (npax.ScanAttention(), jnp.float32, 3),
        (npax.ScanAttention(), jnp.float64, 0),
        (npax.ScanAttention(block=32), jnp.float32, 0),
    ],
)
def test_the_kernels_lower_for_gpus(attention, dtype, kernels, getkey, monkeypatch):
    monkeypatch.setattr(of_fused, "runs_here", lambda: True)
    (q, k, v, bias, xq, xk), mask, _ = draw(getkey(), 70, 90, BIASES["sum"](getkey()))

    @jax.grad
    def total(operands):
        q, k, v, bias, xq, xk = operands
        return jnp.sum(attention.recall(q, xq, attention.memorise(k, v, xk, mask), bias)).astype(jnp.float32)

    with jax.enable_x64(dtype == jnp.float64):
        q, k, v = (np.asarray(a).astype(dtype) for a in (q, k, v))
        lower = jax.jit(total).trace((q, k, v, bias, xq, xk)).lower
        for platform, number in (("cuda", kernels), ("cpu", 0)):
            text = lower(lowering_platforms=(platform,)).as_text()
            assert text.count("xla.gpu.triton") == number


@pytest.mark.parametrize("attend", [npax.dense_attention, npax.scan_attention, npax.fused_attention])
def test_a_bias_of_other_heads_is_refused(attend):
    q, x = jnp.zeros((2, 3, 4)), jnp.zeros((3, 1))
    for heads in (1, 3):
        with pytest.raises(ValueError, match=f"`bias` has {heads} heads and the attention 2"):
            attend(q, q, q, bias=npax.CausalBias(heads), xq=x, xk=x)


@pytest.mark.parametrize("attend", [npax.dense_attention, npax.scan_attention])
@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda xq, xk: jnp.zeros((2, len(xk), len(xq))), r"\[2, 4, 3\]"),
        (lambda xq, xk: jnp.zeros((len(xq), len(xk))), r"\[3, 4\]"),
        (lambda xq, xk: jnp.zeros((2, 1, 1)), r"\[2, 1, 1\]"),
        (lambda xq, xk: 0.0, "float"),
        (lambda xq, xk: None, "NoneType"),
    ],
)
def test_a_bias_of_other_pairs_is_refused(attend, answer, got):
    class Own(npax.bias.AbstractBias):
        def __call__(self, xq, xk):
            return answer(xq, xk)

    q, k = jnp.zeros((2, 3, 4)), jnp.zeros((2, 4, 4))
    words = rf"`bias` of 3 queries and 4 keys must have the shape \[heads, nq, nk\], \[2, 3, 4\]; got {got}"
    with pytest.raises(ValueError, match=words):
        attend(q, k, k, bias=Own(), xq=q[0], xk=k[0])


@pytest.mark.parametrize(("cut", "got"), [(lambda a: a[:, :1], r"\[2, 1, 8\]"), (lambda a: (a, a), "tuple")])
def test_an_attention_that_answers_other_queries_is_refused(cut, got):
    """One row would be taken for that of every query, and be trained."""

    class Own(npax.DenseAttention):
        def recall(self, q, xq, memory, bias):
            return cut(super().recall(q, xq, memory, bias))

    model, x = npax.TNPKR(1, 1, attention=Own(), **TINY, key=jr.key(0)), jnp.zeros((3, 1))
    with pytest.raises(ValueError, match=rf"`recall` of Own must return .* here \[2, 3, 8\]; got {got}"):
        jax.eval_shape(lambda x: model(x, x, x).mean, x)


class Fivefold(npax.RBFNetworkBias):
    def __call__(self, xq, xk):
        return 5 * super().__call__(xq, xk)


@pytest.mark.parametrize("wrapped", [lambda b: b, lambda b: npax.ColumnsBias(b, (0, 1)), lambda b: b + b])
def test_the_kernels_leave_biases_with_a_formula_of_their_own_to_the_scan(wrapped, getkey):
    """Not that of the class that these are made of."""
    q, k, v = (normal(getkey(), (HEADS, n, d)) for n, d in ((NQ, D), (NK, D), (NK, DV)))
    own, known = (wrapped(kind(HEADS, bases=2, key=jr.key(0))) for kind in (Fivefold, npax.RBFNetworkBias))
    assert of_fused.fusable(q, k, v, known) and not of_fused.fusable(q, k, v, own)


def test_shapes_of_kernels_are_checked_where_they_are_made():
    for words, wrong in {
        "`block` must be a power of two": {"block": 17},
        "`warps` must be a whole": {"warps": 0},
    }.items():
        with pytest.raises(ValueError, match=words):
            npax.attention.FusedAttention(**wrong)
    with pytest.raises(ValueError, match="`block` must be a whole number"):
        npax.ScanAttention(block=0)


@pytest.mark.parametrize("attend", [npax.scan_attention, npax.dense_attention])
def test_masks_are_of_true_and_false(attend, getkey):
    q, k, v = (normal(getkey(), (HEADS, 5, D)) for _ in "qkv")
    with pytest.raises(TypeError, match="`mask` must be of True and False"):
        inspect.unwrap(attend)(q, k, v, mask=jnp.array([1, 0, 2, 1, 1]))


@pytest.mark.parametrize("double", range(6))
def test_operands_of_two_precisions_are_brought_to_one(double, getkey):
    """Where promotion is allowed: of the queries' precision, as of operands that all have theirs."""
    operands, mask, weight = draw(getkey(), 20, 35, BIASES["geometric"](getkey()))
    out, grads = value_and_gradients(scan, operands, mask, weight)
    with jax.enable_x64(), jax.numpy_dtype_promotion("standard"):
        mixed = [*operands]
        mixed[double] = jax.tree.map(lambda a: a.astype(jnp.float64), mixed[double])
        found, slopes = value_and_gradients(scan, tuple(mixed), mask, weight)
        assert found.dtype == mixed[0].dtype and np.allclose(found, out, atol=1e-5)
        for a, b, own in zip(*map(jax.tree.leaves, (slopes, grads, tuple(mixed))), strict=True):
            assert a.dtype == own.dtype and np.allclose(a, b, atol=1e-3)


def test_bad_arguments_are_named(getkey):
    (q, k, v, _, xq, _), _, _ = draw(getkey(), 3, 4)
    with pytest.raises(ValueError, match="`block` must be a whole number, at least 1; got 0"):
        npax.scan_attention(q, k, v, block=0)
    for attend in map(inspect.unwrap, (npax.dense_attention, npax.scan_attention, npax.fused_attention)):
        with pytest.raises(ValueError, match="needs the locations `xq` and `xk`"):
            attend(q, k, v, bias=BIASES["geometric"](getkey()), xq=xq)
        with pytest.raises(TypeError, match="`v` must be of real numbers, got int32"):
            attend(q, k, v.astype(jnp.int32))
        with pytest.raises(ValueError, match=r"must have the shapes \[heads, nq, d\]"):
            attend(q[..., :0], k[..., :0], v)
        for short in ({"xq": xq[:2], "xk": k[0, :, :DX]}, {"xq": xq, "xk": k[0, :1, :DX]}):
            with pytest.raises(ValueError, match="`xq` and `xk` must have a row for each of the 3 queries and 4 keys"):
                attend(q, k, v, bias=BIASES["geometric"](getkey()), **short)
        with pytest.raises(ValueError, match=r"must have the shapes \[heads, nq, d\]"):
            attend(q, k, v[:, :2])
        with pytest.raises(ValueError, match=r"`mask` must have the shape \[4\], one for each key; got \[3\]"):
            attend(q, k, v, mask=jnp.ones(3, bool))
    with pytest.raises(ValueError, match="`group` must be a whole number, at least 1; got 0"):
        npax.fused_attention(q, k, v, group=0)
    with pytest.raises(ValueError, match="`step` must be a power of two from 16 on, got 24"):
        npax.fused_attention(q, k, v, step=24)
    with pytest.raises(ValueError, match="`tile`; got float32, float32, float32, heads of 6 and 5 and KernelBias"):
        npax.fused_attention(q, k, v, bias=BIASES["kernel-stationary"](getkey()), xq=xq, xk=k[0, :, :2])
