"""Negative log-likelihoods that the papers print, by task and preset."""

from collections.abc import Mapping

_NP = (
    "; its NP and ANP, by the authors' public code, are trained with z drawn from the context alone and scored by one "
    "Gaussian, of means and standard deviations averaged over draws (ours: with z drawn from q(z | C, T), as in ANP's "
    "eq. 3, and by the mixture of 16 draws)"
)
_VALUES = (
    "whether its log-likelihoods are per value or per target point is not told; the authors' public code sums over "
    "columns, ours are per value"
)
_STEPS = "500,000 or 5,000,000 steps of batch 16 (its appendix F.1 has both), models of width 128"
SOURCES: Mapping[str, str] = {
    "gp1d-rbf": f"KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32{_NP}",
    "gp1d-periodic": f"KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32{_NP}",
    "gp1d-matern32": f"KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32{_NP}",
    "gp2d-rbf": f"KR2 (TNP-KR, ICML version), GP-2D: mean of 5 seeds, 100,000 steps of batch 16{_NP}",
    "mnist": f"KR2 (TNP-KR, ICML version), image completion: mean of 5 seeds, 100,000 steps of batch 16{_NP}",
    "celeba": "KR2 (TNP-KR, ICML version), image completion: mean of 5 seeds, 100,000 steps of batch 16, all of CelebA"
    + _NP,
    "cifar10": f"KR2 (TNP-KR, ICML version), image completion: mean of 5 seeds, 100,000 steps of batch 16{_NP}",
    **dict.fromkeys(
        ("sir-64", "sir-128", "sir-256", "sir-1024"),
        "KR2 (TNP-KR, ICML version), SIR: mean of 5 seeds, trained on 64 x 64; on larger lattices its SA is the "
        "translation-invariant one" + _NP,
    ),
    **dict.fromkeys(
        ("tmnist", "tcifar10"),
        "TE (translation-equivariant TNPs), Table 1, models of width 32 with 128 pseudo-tokens; the scale of its "
        f"values is not told; {_VALUES}",
    ),
    "kolmogorov": (
        "TE (translation-equivariant TNPs), Table 2, models of width 32 with 64 pseudo-tokens: minus its "
        "log-likelihoods, whose signs the copy that was read has lost (a log-likelihood is positive if it "
        "is better than another); a simulation of its own, whose scale is not told, up to 5,000,000 steps; "
        f"signs that do not follow are left out; {_VALUES}"
    ),
    "environment": (
        "TE (translation-equivariant TNPs), Table 3, models of width 32 with 128 pseudo-tokens: minus its "
        "log-likelihoods; signs that the copy that was read has lost and that do not "
        "follow are left out. All of 2019; ours are five days of July 2022"
    ),
    "shift": f"TE (translation-equivariant TNPs), Table 5: {_STEPS}; its TNP, in which blocks of their own update the "
    "targets (as in EQTNP), stands beside TNP-D",
    "bimodal": f"TE, Tables 5 and 7: {_STEPS}",
}
"""Where the figures of a table come from, and after what training."""

_KR2 = {  # GP-1D RBF, periodic, Matern 3/2; GP-2D RBF
    "np": (0.232, 1.340, 0.565, 1.173),
    "cnp": (0.101, 1.119, 0.463, 1.128),
    "bnp": (0.042, 1.107, 0.443, 1.109),
    "anp": (-0.298, 0.824, 0.086, 0.723),
    "canp": (-0.301, 0.786, 0.080, 0.586),
    "banp": (-0.335, 0.738, 0.036, 0.539),
    "convcnp": (-0.454, 0.551, -0.014, 0.466),
    "tnp_d": (-0.454, 0.536, -0.020, 0.483),
    "tnp_kr_perf": (-0.459, 0.514, -0.024, 0.508),
    "tnp_kr_dka": (-0.464, 0.510, -0.025, 0.484),
    "tnp_kr_sa": (-0.462, 0.491, -0.027, 0.460),
}
_KR2_IMAGES = {  # MNIST, CelebA, CIFAR-10
    "np": (-0.702, -0.182, -0.067),
    "cnp": (-0.806, -0.221, -0.103),
    "bnp": (-0.656, -0.268, -0.145),
    "anp": (-0.889, -0.777, -0.732),
    "canp": (-0.965, -0.799, -0.741),
    "banp": (-0.985, -0.830, -0.763),
    "convcnp": (-1.101, -0.863, -0.816),
    "tnp_d": (-1.242, -0.877, -0.810),
    "tnp_kr_perf": (-1.081, -0.867, -0.782),
    "tnp_kr_dka": (-1.117, -0.892, -0.807),
    "tnp_kr_sa": (-1.246, -0.917, -0.831),
}
_KR2_SIR_64 = {
    "np": (0.306,),
    "cnp": (0.296,),
    "anp": (0.230,),
    "canp": (0.242,),
    "convcnp": (0.196,),
    "tnp_d": (0.191,),
    "tnp_kr_perf": (0.264,),
    "tnp_kr_dka": (0.256,),
    "tnp_kr_sa": (0.190,),
}
_KR2_SIR_128 = {"anp": (0.468,), "canp": (1.741,), "convcnp": (0.282,), "tnp_d": (0.272,)}
_KR2_SIR = {  # on 128 x 128, 256 x 256, 1024 x 1024
    "np": (0.802, 5.074, 27.218),
    "cnp": (0.555, 1.791, 27.195),
    "tnp_kr_perf": (0.286, 0.643, 1.457),
    "tnp_kr_dka": (0.376, 0.604, 1.144),
    "tnp_kr_sa_invariant": (0.224, 0.303, 0.307),
}
_TE_IMAGES = {  # T-MNIST, T-CIFAR-10
    "cnp": (-0.64, -0.72),
    "rcnp": (-1.04, -1.19),
    "convcnp": (-1.20, -1.44),
    "pt_tnp": (-1.14, -1.46),
    "te_pt_tnp": (-1.25, -1.51),
}
# The signs are those without which TE-PT-TNP would not be the best, as the text says it is.
_TE_FLOW = {"cnp": (0.97,), "te_pt_tnp": (-0.92,)}
_TE_ENVIRONMENT = {"te_pt_tnp": (-1.35, -1.27, -1.44)}  # Central, Western, Northern Europe
_TE = {  # shifts of 0, 0.2, 0.4, 0.6, 0.8, 1.0; the pseudo-token models have 32 of them
    "tnp_d": (0.48, 0.48, 0.49, 0.50, 0.52, 0.57),
    "pt_tnp": (0.48, 0.49, 0.52, 0.55, 0.59, 0.63),
    "cnp": (0.69, 0.71, 0.77, 0.86, 0.98, 1.08),
    "rcnp": (0.58, 0.58, 0.58, 0.58, 0.58, 0.58),
    "convcnp": (0.46, 0.46, 0.46, 0.46, 0.46, 0.46),
    "te_tnp": (0.47, 0.47, 0.47, 0.47, 0.47, 0.47),
    "te_pt_tnp": (0.46, 0.46, 0.46, 0.46, 0.46, 0.46),
}


def _by_task(tasks, figures):
    return {task: {model: row[i] for model, row in figures.items()} for i, task in enumerate(tasks)}


_SIR = _by_task(("sir-128", "sir-256", "sir-1024"), _KR2_SIR)
_ENVIRONMENT = _by_task(
    tuple(f"environment-{region}" for region in ("central", "western", "northern")), _TE_ENVIRONMENT
)
PUBLISHED: Mapping[str, Mapping[str, float]] = {
    **_by_task(("mnist", "celeba", "cifar10"), _KR2_IMAGES),
    **_by_task(("sir-64",), _KR2_SIR_64),
    **_SIR,
    "sir-128": {**_SIR["sir-128"], **_by_task(("sir-128",), _KR2_SIR_128)["sir-128"]},
    **_by_task(("kolmogorov",), _TE_FLOW),
    **_ENVIRONMENT,
    "environment-western": {**_ENVIRONMENT["environment-western"], "cnp": 5.70},
    "environment-northern": {**_ENVIRONMENT["environment-northern"], "cnp": 1.64},
    **_by_task(("tmnist", "tcifar10"), _TE_IMAGES),
    **_by_task(("gp1d-rbf", "gp1d-periodic", "gp1d-matern32", "gp2d-rbf"), _KR2),
    "bimodal": {"te_pt_tnp": 0.67},
    **_by_task(tuple(f"shift-{shift}" for shift in ("0", "0.2", "0.4", "0.6", "0.8", "1")), _TE),
}
"""Published NLL: task, then preset. TE's TNP stands beside `tnp_d` (see `SOURCES`), its TE-TNP beside ours, in which
one block does what two do there."""

SPEED_SOURCES: Mapping[str, str] = {
    "targets": "Published: KR1 (TNP-KR, first version), Table 1, microseconds per sample; `tnp_kr_sa`: its "
    "TNP-KR-Full, which has no bias (ours: five exponentials for each pair and head), `tnp_kr_perf`: its TNP-KR-Fast.",
    "contexts": "Published: KR1, Table 2, likewise.",
    "images": "Published: KR2 (TNP-KR, ICML version), Table 19, milliseconds for SIR images of 128 x 128, 256 x 256 "
    "and 1024 x 1024 pixels (the number of context points varied). PERF and DKA take 0.3 ms for the largest in its "
    "section 4.4; whether the device was waited for is not said.",
}
"""Where the published times come from: KR1's are of an NVIDIA RTX 4090, KR2's of "a single 24GB GPU"."""


def _by_size(sizes, **rows):
    return {size: {row: figures[i] for row, figures in rows.items()} for i, size in enumerate(sizes)}


PUBLISHED_SPEED: Mapping[str, Mapping[tuple[int, int], Mapping[str, str]]] = {
    "targets": _by_size(
        [(100, 10**i) for i in range(7)],
        tnp_d_masked=("118", "119", "129", "286", "45,000", "OOM", "OOM"),
        tnp_kr_sa=("171", "287", "267", "230", "474", "7,040", "86,800"),
        tnp_kr_perf=("194", "327", "282", "226", "436", "4,510", "64,300"),
    ),
    "contexts": _by_size(
        [(10**i, 100) for i in range(7)],
        tnp_d_masked=("99", "99", "114", "247", "44,700", "OOM", "OOM"),
        tnp_kr_sa=("98", "220", "286", "302", "36,700", "OOM", "OOM"),
        tnp_kr_perf=("138", "277", "299", "234", "632", "6,900", "88,400"),
    ),
    "images": _by_size(
        [(1270, 4096), (5079, 65_536), (100_000, 1_048_576)],
        tnp_d_masked=("0.8", "OOM", "OOM"),
        tnp_kr_sa=("1.3", "163.6", "49,505.6"),
        tnp_kr_perf=("0.3", "0.3", "1.2"),
        tnp_kr_dka=("0.3", "0.3", "1.2"),
    ),
}
"""Published times by table, context and targets, and row."""
