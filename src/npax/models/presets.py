"""The models of the papers at the size of KR2's comparison, half a million parameters: functions one can read.

All take `(dx, dy, *, key)`, and all but `tnp_nd` a `likelihood` too: a bounded Gaussian for pixels, classes for an
epidemic; the default is that of the model.
"""

import jax.random as jr
from jaxtyping import PRNGKeyArray
from tinygp.kernels import ExpSineSquared

from ..attention import (
    DeepKernelAttention,
    DenseAttention,
    FavorAttention,
    RotaryCoordinates,
    ScanAttention,
)
from ..bias import GeometricRBFBias, KernelBias, RBFNetworkBias
from ..blocks import MultiHeadAttention
from ..likelihoods import AbstractLikelihood, FunctionAndNoise
from .bnp import BNP
from .cnp import CNP
from .convcnp import ConvCNP
from .grid_convcnp import GridConvCNP
from .np import NP
from .pt_tnp import LBANP, PTTNP
from .rcnp import RCNP
from .te_pt_tnp import TEPTTNP
from .te_tnp import TETNP
from .tnp import EQTNP, TNPD
from .tnp_a import TNPA
from .tnp_kr import TNPKR
from .tnp_kr_spectral import SpectralTNPKR
from .tnp_nd import TNPND

Likelihood = AbstractLikelihood | None


def cnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> CNP:
    """CNP with encoder and decoder of width 256, 0.5 M parameters as all models of the KR2 comparison."""
    return CNP(dx, dy, encoder=(256, 256, 256), size=256, decoder=(256, 256, 256, 256), likelihood=likelihood, key=key)


def np(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> NP:
    """NP: two encoders and a decoder of width 192, a latent variable of 64."""
    return NP(dx, dy, encoder=(192, 192, 192), size=192, decoder=(192, 192, 192, 192), likelihood=likelihood, key=key)


def bnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> BNP:
    """BNP: encoder and decoder of width 240."""
    return BNP(dx, dy, encoder=(240, 240, 240), size=240, decoder=(240, 240, 240, 240), likelihood=likelihood, key=key)


def canp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> CNP:
    """CANP: width 144, two layers of self-attention and multi-head cross-attention, 8 heads each.

    Ours: one deterministic path. The public code of Lee et al. (2020) concatenates a second, pooled one.
    """
    cross, rest = jr.split(key)
    return CNP(
        dx,
        dy,
        attention=MultiHeadAttention(dx, 144, key=cross),
        layers=2,
        **_attentive(144, 4),
        likelihood=likelihood,
        key=rest,
    )


def anp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> NP:
    """ANP: width 128, multi-head cross-attention of 8 heads, a layer of self-attention of 4 heads in either path.

    Kim et al. have no self-attention in 1-D, two layers of 8 heads for images (there with cross-attention of the Image
    Transformer's kind), and standard deviations of at least 0.1.
    """
    cross, rest = jr.split(key)
    return NP(
        dx,
        dy,
        attention=MultiHeadAttention(dx, 128, key=cross),
        layers=1,
        heads=4,
        **_attentive(128, 4),
        likelihood=likelihood,
        key=rest,
    )


def banp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> BNP:
    """BANP: as `canp`, with the bootstrap; here too Lee et al. have a second, pooled path."""
    cross, rest = jr.split(key)
    return BNP(
        dx,
        dy,
        attention=MultiHeadAttention(dx, 144, key=cross),
        layers=2,
        **_attentive(144, 4),
        likelihood=likelihood,
        key=rest,
    )


def rcnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> RCNP:
    """RCNP at the size of `cnp`: three hidden layers of width 256 where TE (App. F) has five, of fewer parameters."""
    return RCNP(dx, dy, encoder=(256, 256, 256), size=256, decoder=(256, 256, 256, 256), likelihood=likelihood, key=key)


def convcnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> ConvCNP:
    """ConvCNP for coordinates in [-2, 2]: 64 nodes per unit and 14 blocks on five levels for `dx` = 1; 8 nodes per
    unit and 13 blocks on three levels for `dx` = 2 (and 3: 48 nodes per axis, heavy). 64 channels.

    In two dimensions nodes are coarser than the pixels of images of 64 and more a side, which a `ConvCNP` of its own
    `spacing` would see.
    """
    if dx == 1:
        return ConvCNP(dx, dy, spacing=1 / 64, blocks=(1, 1, 2, 2, 2), window=7, likelihood=likelihood, key=key)
    return ConvCNP(dx, dy, spacing=1 / 8, margin=0.5, blocks=(1, 3, 5), window=3, likelihood=likelihood, key=key)


def tnp_d(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPD:
    """TNP-D at the size of `tnp_kr_sa`: 6 blocks of width 64, 4 heads of 32, feed-forward 256."""
    return TNPD(dx, dy, likelihood=likelihood, key=key)


def tnp_nd(dx: int, dy: int, *, key: PRNGKeyArray) -> TNPND:
    """TNP-ND: as `tnp_d`, with 16 features per target for the covariance."""
    return TNPND(dx, dy, key=key)


def tnp_a(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPA:
    """TNP-A: as `tnp_d`."""
    return TNPA(dx, dy, likelihood=likelihood, key=key)


def eqtnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> EQTNP:
    """EQTNP: two stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 128."""
    return EQTNP(dx, dy, likelihood=likelihood, key=key)


def lbanp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> LBANP:
    """LBANP with 32 pseudo-tokens: three stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 64."""
    return LBANP(dx, dy, pseudo_tokens=32, likelihood=likelihood, key=key)


def pt_tnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> PTTNP:
    """PT-TNP with 32 pseudo-tokens: two stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 128."""
    return PTTNP(dx, dy, pseudo_tokens=32, likelihood=likelihood, key=key)


def te_tnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TETNP:
    """TE-TNP with location updates: 6 blocks of width 64, 4 heads of 32, feed-forward 256, as `tnp_d`."""
    return TETNP(dx, dy, likelihood=likelihood, key=key)


def te_pt_tnp(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TEPTTNP:
    """TE-PT-TNP with 32 pseudo-tokens and location updates: 5 layers of width 64, 4 heads of 16, feed-forward 128."""
    return TEPTTNP(dx, dy, pseudo_tokens=32, likelihood=likelihood, key=key)


def tnp_kr_full(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: Full, with the bias of KR2 (KR1's own has none): `tnp_kr_sa` with all logits in one array."""
    return TNPKR(
        dx,
        dy,
        attention=DenseAttention(),
        bias=lambda key: RBFNetworkBias(4, bases=5, key=key),
        likelihood=likelihood,
        key=key,
    )


def tnp_kr_sa(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA of KR2 §4: scan attention, TISA bias with 5 bases, locations in the tokens; 0.5 M parameters."""
    return TNPKR(dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), likelihood=likelihood, key=key)


def tnp_kr_sa_invariant(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA, translation invariant (KR2 §3.2): as `tnp_kr_sa` without locations in the tokens."""
    return TNPKR(
        dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), locations=False, likelihood=likelihood, key=key
    )


def tnp_kr_sa_rotary(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA, translation equivariant and able to tell left from right: rotary products and a geometric bias."""
    return TNPKR(dx, dy, **_rotary_parts(dx), likelihood=likelihood, key=key)


def tnp_kr_sa_periodic(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA with a periodic kernel beside the RBF network in every head's bias (KR2 §3.2); otherwise `tnp_kr_sa`.

    The 24 periods start log-uniform in [0.5, 2], those of the periodic tasks of GP-1D, and are trained.
    """

    def bias(key):
        network, drawn = jr.split(key)
        periods = 2.0 ** jr.uniform(drawn, (4,), minval=-1.0, maxval=1.0)
        return RBFNetworkBias(4, bases=5, key=network) + KernelBias([ExpSineSquared(p, gamma=10.0) for p in periods])

    return TNPKR(dx, dy, bias=bias, likelihood=likelihood, key=key)


def tnp_kr_sa_spectral(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> SpectralTNPKR:
    """TNP-KR: SA with a bias that depends on the task, and without locations in the tokens: the blocks of
    `tnp_kr_sa` with a feed-forward of 128."""
    return SpectralTNPKR(dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), likelihood=likelihood, key=key)


def tnp_kr_perf(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: PERF (KR1's Fast): FAVOR+ with 64 features, locations in the tokens."""
    return TNPKR(dx, dy, attention=lambda key: FavorAttention(32, features=64, key=key), likelihood=likelihood, key=key)


def tnp_kr_perf_rotary(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: PERF, translation equivariant: its 64 features are turned by the locations."""

    def attention(key):
        rotary, draws = jr.split(key)
        return FavorAttention(32, features=64, rotary=RotaryCoordinates(4, 64, dx, key=rotary), key=draws)

    return TNPKR(dx, dy, attention=attention, locations=False, likelihood=likelihood, key=key)


def tnp_kr_dka(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: DKA (KR2 §3.4): deep kernel attention of rank 128, locations in the tokens and in the kernel."""
    return TNPKR(
        dx, dy, attention=lambda key: DeepKernelAttention(64, dx, hidden=96, key=key), likelihood=likelihood, key=key
    )


def tnp_kr_dka_rotary(dx: int, dy: int, *, likelihood: Likelihood = None, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: DKA, translation equivariant: the kernel's 128 features are turned by the locations."""

    def attention(key):
        rotary, rest = jr.split(key)
        return DeepKernelAttention(64, dx, hidden=96, rotary=RotaryCoordinates(1, 128, dx, key=rotary), key=rest)

    return TNPKR(dx, dy, attention=attention, locations=False, likelihood=likelihood, key=key)


def gp_universal(*, key: PRNGKeyArray) -> TNPKR:
    """The architecture of the shipped model `gp-universal`: one `y`, up to three coordinates (fewer: pad with zeros).

    Translation equivariant; its head tells the function from the noise; it takes known standard errors.
    """
    return TNPKR(3, 1, **_rotary_parts(3), errors=True, likelihood=FunctionAndNoise(1), key=key)


def field_universal(*, key: PRNGKeyArray) -> GridConvCNP:
    """The architecture of the shipped model `field-universal`: pictures with gaps, one `y`, coordinates in pixels.

    Its head tells the function from the noise. It sees 64 pixels a side at the coarsest of its six levels.
    """
    return GridConvCNP(
        2, 1, spacing=1.0, extent=128.0, blocks=(1, 1, 2, 2, 2, 3), likelihood=FunctionAndNoise(1), key=key
    )


def _attentive(size, decoder):
    return {"encoder": (size, size), "size": size, "decoder": (size,) * decoder}


def _rotary_parts(dx):
    return {
        "attention": ScanAttention(),
        "bias": lambda key: GeometricRBFBias(4, key=key),
        "rotary": lambda key: RotaryCoordinates(4, 32, dx, key=key),
        "locations": False,
    }
