"""The models of the papers at their published sizes: functions one can read. All take `(dx, dy, *, key)`."""

from jaxtyping import PRNGKeyArray

from ..attention import RotaryCoordinates, ScanAttention
from ..bias import GeometricRBFBias, RBFNetworkBias
from ..likelihoods import FunctionAndNoise
from .cnp import CNP
from .pt_tnp import LBANP, PTTNP
from .rcnp import RCNP
from .tnp import EQTNP, TNPD
from .tnp_kr import TNPKR


def cnp(dx: int, dy: int, *, key: PRNGKeyArray) -> CNP:
    """CNP with encoder and decoder of width 256, 0.5 M parameters as all models of the KR2 comparison."""
    return CNP(dx, dy, encoder=(256, 256, 256), size=256, decoder=(256, 256, 256, 256), key=key)


def rcnp(dx: int, dy: int, *, key: PRNGKeyArray) -> RCNP:
    """RCNP at the size of `cnp`."""
    return RCNP(dx, dy, encoder=(256, 256, 256), size=256, decoder=(256, 256, 256, 256), key=key)


def tnp_d(dx: int, dy: int, *, key: PRNGKeyArray) -> TNPD:
    """TNP-D at the size of `tnp_kr_sa`: 6 blocks of width 64, 4 heads of 32, feed-forward 256."""
    return TNPD(dx, dy, key=key)


def eqtnp(dx: int, dy: int, *, key: PRNGKeyArray) -> EQTNP:
    """EQTNP: two stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 128."""
    return EQTNP(dx, dy, key=key)


def lbanp(dx: int, dy: int, *, key: PRNGKeyArray) -> LBANP:
    """LBANP with 32 pseudo-tokens: three stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 64."""
    return LBANP(dx, dy, pseudo_tokens=32, key=key)


def pt_tnp(dx: int, dy: int, *, key: PRNGKeyArray) -> PTTNP:
    """PT-TNP with 32 pseudo-tokens: two stacks of 6 blocks of width 64, 4 heads of 16, feed-forward 128."""
    return PTTNP(dx, dy, pseudo_tokens=32, key=key)


def tnp_kr_sa(dx: int, dy: int, *, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA of KR2 §4: scan attention, TISA bias with 5 bases, locations in the tokens; 0.5 M parameters."""
    return TNPKR(dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), key=key)


def tnp_kr_sa_invariant(dx: int, dy: int, *, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA, translation invariant (KR2 §3.2): as `tnp_kr_sa` without locations in the tokens."""
    return TNPKR(dx, dy, bias=lambda key: RBFNetworkBias(4, bases=5, key=key), locations=False, key=key)


def tnp_kr_sa_rotary(dx: int, dy: int, *, key: PRNGKeyArray) -> TNPKR:
    """TNP-KR: SA, translation equivariant and able to tell left from right: rotary products and a geometric bias."""
    return TNPKR(dx, dy, **_rotary_parts(dx), key=key)


def gp_universal(*, key: PRNGKeyArray) -> TNPKR:
    """The architecture of the shipped model `gp-universal`: one `y`, up to three coordinates (fewer: pad with zeros).

    Translation equivariant; its head tells the function from the noise.
    """
    return TNPKR(3, 1, **_rotary_parts(3), likelihood=FunctionAndNoise(1), key=key)


def _rotary_parts(dx):
    return {
        "attention": ScanAttention(),
        "bias": lambda key: GeometricRBFBias(4, key=key),
        "rotary": lambda key: RotaryCoordinates(4, 32, dx, key=key),
        "locations": False,
    }
