"""Negative log-likelihoods that the papers print, by task and preset."""

from collections.abc import Mapping

SOURCES: Mapping[str, str] = {
    "gp1d-rbf": "KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32",
    "gp1d-periodic": "KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32",
    "gp1d-matern32": "KR2 (TNP-KR, ICML version), GP-1D: mean of 5 seeds, 100,000 steps of batch 32",
    "gp2d-rbf": "KR2 (TNP-KR, ICML version), GP-2D: mean of 5 seeds, 100,000 steps of batch 16",
    "shift": "TE (translation-equivariant TNPs), Table 5: up to 5,000,000 steps of batch 16, models of width 128",
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


PUBLISHED: Mapping[str, Mapping[str, float]] = {
    **_by_task(("gp1d-rbf", "gp1d-periodic", "gp1d-matern32", "gp2d-rbf"), _KR2),
    **_by_task(tuple(f"shift-{shift}" for shift in ("0", "0.2", "0.4", "0.6", "0.8", "1")), _TE),
}
"""Published NLL: task, then preset. TE's TNP is in the efficient form of `tnp_d`."""

SPEED_SOURCES: Mapping[str, str] = {
    "targets": "Published: KR1 (TNP-KR, first version), Table 1, microseconds per sample; `tnp_kr_sa`: its "
    "TNP-KR-Full, `tnp_kr_perf`: its TNP-KR-Fast.",
    "contexts": "Published: KR1, Table 2, likewise.",
    "images": "Published: KR2 (TNP-KR, ICML version), Table 19, milliseconds for SIR images of 128 x 128, 256 x 256 "
    "and 1024 x 1024 pixels (the number of context points varied).",
}
"""Where the published times come from; all on one 24 GB NVIDIA RTX 4090."""


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
