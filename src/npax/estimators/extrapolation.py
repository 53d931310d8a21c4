"""Targets beyond what the observations say something about."""

from ..warn import warn


class Extrapolation(UserWarning):
    """Targets lie so far outside the observations that intervals there are too narrow.

    That is outside the box that holds the observations by more than half of its half-width, in any coordinate in which
    they vary (with `coords="latlon"`: of its larger half-width, on a map whose distances from the middle of the
    observations are true; a box around the globe has no outside). Of the shipped model's 95 % intervals of noisy Matern
    3/2 fields, on a line and in the plane, length scales 0.3 to 2 half-widths, 95 % hold at 1.2 half-widths from the
    middle of the box, 88 % at 2 and 91 % at 21; of the smoothest field in the plane 67 % at 2.
    """


def warn_of_extrapolation(far: int, n: int, about: str = "", advice: str = "") -> None:
    """Warns where `far` is not zero, of `n` targets; ends with `advice`, if there is any."""
    if far:
        warn(
            f"{about}{far:,} of {n:,} targets lie outside the observations by more than half of their half-width. "
            "Intervals are too narrow there: of the shipped model, at twice the half-width from the middle, 95 % "
            "intervals hold 88 % of new observations, of smooth fields 67 %. Predict nearer to the observations, or do "
            f"not rely on the standard deviations of these targets.{advice}",
            Extrapolation,
        )
