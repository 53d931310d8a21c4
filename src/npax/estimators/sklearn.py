"""The scikit-learn estimator."""

import contextlib
from collections.abc import Hashable
from functools import partial
from typing import Any

import jax.random as jr
import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from ..arguments import true_or_false, whole_number
from ..inference import (
    ByColumn,
    Drift,
    Exact,
    Noise,
    Predictor,
    Tiled,
    average_covariance,
    average_std,
    coordinates,
    grouped,
    levels_of,
)
from ..inference.joint import check_joint, covariance, joint_samples
from ..likelihoods import of_real_numbers
from ..metrics._check import check_order, check_rows
from ..models._base import check_error
from ..training import AbstractGaps, finetune as train_on_gaps
from ..warn import warn
from .covariates import columns, refuse_drift, warn_of_other_covariates
from .dates import refuse_dates_in
from .degrees import refuse_latitude_first, warn_of_degrees
from .extrapolation import warn_of_extrapolation
from .finetuned import better
from .known_errors import joined, like, warn_of_large_errors
from .levels import levels_help
from .likelihood import refuse_impossible, warn_of_noise, warn_of_shape
from .missing import finite_rows, refuse_missing, unmasked, warn_of_codes
from .moments import exceedance
from .observed import Observed
from .options import model_of, probabilities, refuse_both, seed_of
from .regions import Regions
from .repeats import warn_of_copies
from .scale import warn_of_no_scale
from .strays import warn_of_strays
from .text import refuse_text
from .tile_sizes import USUAL, best_tile_size, check_tile_size
from .views import check_views, in_views, number_of_views


class DroppedRows(UserWarning):
    """Observations without a finite value were left out."""


class NeuralProcessRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Regression with calibrated uncertainty by a pretrained neural process: nothing is trained unless asked for.

    A drop-in for `sklearn.gaussian_process.GaussianProcessRegressor`: `fit` stores the observations, `predict` has
    the network infer length scales, smoothness and noise from them and gives mean and standard deviation in one pass.

    **Arguments:**

    - `model`: the name of a pretrained model (`npax.pretrained()`), the path of a saved one, or the model itself.
    - `coords`: `"planar"`, columns of numbers, each of a unit of its own; `"isotropic"`, columns of one unit, such as
      the metres of a map, all scaled alike; or `"latlon"`, longitude and latitude in degrees (in this order, any wrap),
      on the sphere, and after them others of units of their own (depth, time). Units of their own, and those to the
      east and to the north on the sphere, are brought to such in which a column of `y` varies alike along each
      coordinate, by the length scales of greatest likelihood (`npax.inference.anisotropy`). With others beside the
      sphere all observations are seen together only where they lie within 90 degrees of their middle, and `"auto"`
      takes tiles elsewhere.
    - `covariates`: columns of `X`, by their place (0 is the first) or name, that are no coordinates but tell something
      of `y` as well, such as the elevation or the distance to a river. `y` rises with each in proportion, by slopes
      that are fitted (the external drift of universal kriging, `npax.inference.Drift`), and the network predicts what
      these leave. Where effects are not linear give logarithms, squares, zeros and ones for classes. Good values: up to
      a tenth as many as there are observations (at a fifth 95 % intervals cover 88 %); with fewer than five
      observations they are ignored (`coef_` is 0, `coef_std_` infinite).
    - `normalize`: bring the coordinates to [-2, 2] and `y` to mean zero and standard deviation one, by the context
      alone (True); or take both as they are (False), which tells the model more where they are in the units that it
      was trained in: on tasks of its own kind, and for models of your own. Classes, counts, shares and whatever else a
      model's likelihood does not predict over all real numbers are never standardised.
    - `strategy`: `"exact"`, every target sees every observation, O(n²) once and O(n) per target; `"tiled"`, it sees
      those of its neighbourhood, for any number of observations; `"auto"`, exact for few observations, tiled for many
      and where there is little noise (`npax.inference.choose`). Where noise hides what differs among near observations,
      `"auto"` shows the network the means of 2, 4, 8, ... of them (`npax.inference.superobservations`).
    - `views`: looks at the observations, each of which the network answers; the prediction is the geometric mean
      (`npax.Symmetrised`). `"auto"`: four (`npax.models.turned`) of a pretrained model that is given by its name and
      sees up to 1,500 observations, or means of them, which takes four times as long and is more accurate, most where
      noise is strong; the observations as they are for other models, which may have been trained where directions and
      lengths matter, for more observations, and without `normalize`. Others: a sequence of `npax.models.View`, whose
      turns are of as many coordinates as the model has (the pretrained ones 3, whatever `X` has), or None.
    - `on_missing`: what to do with NaN or infinity in `y`: `"drop"` the rows with a warning that counts them, or
      `"raise"` a `ValueError`. (In coordinates and covariates they are an error.)
    - `tile_size`: observations that a tile sees. Good values: 64 (what varies from place to place) to 512 (smooth
      fields). `"auto"`: 128, or 64 or 32 if `fit` finds held-out places clearly better predicted by these, which takes
      seconds: where there are narrow features, or cycles with few observations of each.
    - `levels`: whether values at the same places (stations) at many times, and at the same times at many places, are
      looked at for what they have in common (`npax.inference.levels_of`): wells of different levels, stations with the
      same season. It is predicted by itself if `fit` finds held-out places clearly better predicted so, which takes
      seconds where there is some. Columns of one unit (`"isotropic"`) make a place only together, as do longitude and
      latitude.
    - `progress`: show a progress bar over tiles, over the targets of an exact prediction, or over those of samples and
      covariances.
    - `random_state`: seed of `sample_y` where that is given None; a whole number, or a generator of NumPy's, old or
      new.

    **Attributes** after `fit`: `model_`, `coords_`, `X_`, `y_`, `error_`: model, coordinates and observations in use;
    `finetuned_`, what `npax.finetune` returned, or None; `n_features_in_`, `feature_names_in_`; `strategy_`, the
    one in use; `tile_size_`, which `update` leaves as it is; `averaged_`, for each column of `y`, or group that the
    model takes, how many observations the network sees as one (1: none are); `takes_levels_`, whether levels are taken
    off, which `update` leaves as it is, and `levels_`, for each the groups of columns of `X` that have some;
    `views_`, the number of views; `coef_`, the slopes of the covariates, `[p]` or `[dy p]`, and `coef_std_`, their
    standard deviations.

    **Shapes:** `X [n d]` with up to as many coordinates as the model takes (the pretrained ones 3), and covariates; `y
    [n]` or `[n dy]`, each column predicted by itself, where the model has one; but rows in which one is missing are
    left out for all, and strategy and views are chosen for all together: fit columns one by one that differ much in
    noise or in how fast they vary. Any finite values of `y` will do: predictions for `c y` are `c`
    times those for `y`, for all positive `c`. Only a constant `y`, or a single one, has no scale of its own: its unit
    is kept, as though deviations of about 1 were usual, by either strategy; `fit` warns of it.

    **Several devices** of the process share the tiles, or the targets from a thousand on, by themselves; within
    `jax.default_device(one)` that one works alone. Fine-tuning uses them as `npax.fit` does.

    **After `fit`** `set_params` acts at once on `strategy`, `progress`, `on_missing` and `random_state`, from the next
    `update` on on `normalize` and `views`, and from the next `fit` on on all else. Several threads may predict at a
    time; one alone may `update`.

    **Warns** with `npax.estimators.Extrapolation` where targets lie outside the observations by more than half of their
    half-width: intervals there are too narrow.

    **Pitfalls:** intervals cover new observations; `include_noise=False` is for the noiseless function. Slopes on
    `covariates` are the same everywhere. What varies by less than about a hundredth of the standard deviation of `y` is
    not resolved: take a strong trend off first, and add it to the predictions. Columns in another order, or `-y`, get
    answers that differ a little, for the network has learned such symmetries, not been given them (`npax.Symmetrised`
    averages over some).

    Where 95 % intervals cover another share than 95 %:

    - of new observations, on even designs: where noise is a third of the field's standard deviation 93 % from 12 or 40
      points on a line, 91 to 96 % from lattices of 64 to 400; with noise as strong as the field 91 and 93 %;
    - of new observations at the very places of others in the plane, where strong noise is taken for a rough field,
      unless it is known (`error`): 92 % from 60 points with noise a third of the field, 89 % with noise as strong, 94 %
      from 200; a tenth of the box beside them 95 %;
    - of the noiseless function: at these places less likewise; elsewhere nearly all, where noise is as strong as the
      field; from thousands of observations with little noise on a line 89 to 91 %, since the network does not know how
      the function varies within a mean; of 10 to 40 places, observed again and again with a noise three times as
      strong, 83 to 93 %; of rough fields (Matern-1/2) with known errors 88 to 92 %, but at the very places of
      observations that are more exact than a tenth of the field all, since the network is less exact there than these
      are: with errors of 2 % of the field it is off by 6 to 9 %.
    """

    def __init__(
        self,
        model="gp-universal",
        *,
        coords="planar",
        covariates=(),
        normalize=True,
        strategy="auto",
        views="auto",
        on_missing="drop",
        tile_size=128,
        levels=True,
        progress=False,
        random_state=None,
    ):
        self.model = model
        self.coords = coords
        self.covariates = covariates
        self.normalize = normalize
        self.strategy = strategy
        self.views = views
        self.on_missing = on_missing
        self.tile_size = tile_size
        self.levels = levels
        self.progress = progress
        self.random_state = random_state

    def fit(self, X, y, *, error=None, finetune: int = 0, gaps: AbstractGaps | None = None) -> "NeuralProcessRegressor":
        """Checks and keeps the observations; with `finetune`, adapts the model to them first.

        **Arguments:**

        - `error`: standard deviations of that part of the noise on `y` that is known beforehand, such as that of an
          instrument or of averages (`std / sqrt(n)`): of the shape of `y`, or one for all. Zero where none is known: it
          does not say that a value is exact, which no option does.
          What noise there is beside it the model infers, and only that is part of a new observation's: one whose own
          error is known has the standard deviation `np.hypot(std, error)`. Observations of errors far above those of
          most are left out, for they would say next to nothing. Where near observations are averaged each counts as
          much as its error lets it.
        - `finetune`: steps of training on gaps cut into the observations (`npax.finetune`, with tiles of `tile_size`;
          good values: 100 to 500, from about a thousand observations on); the model that was best on other gaps is
          used, which may be the one that came. Single observations are trained on: where predictions are of means of
          near ones, the trained model is only used if it predicts the other gaps better from these, too.
        - `gaps`: how they look, such as `npax.training.MovedGaps(at)` with the places `at` that are to be filled.

        **Raises:** `ValueError` for wrong shapes, text, dates, NaN or infinity in `X`, no rows, more columns than the
        model takes, latitudes beyond 90, an `error` that is negative or not finite, or for a model that takes none
        or is fine-tuned; `FileNotFoundError` or `npax.training.DamagedFile` for the model's file.
        """
        self._check_options()
        whole_number(0, finetune=finetune)
        if gaps is not None and not finetune:
            raise ValueError(
                "`gaps` say what to fine-tune on, and `finetune` is 0: give it a number of steps, say 200."
            )
        if error is not None and finetune:
            raise ValueError("`finetune` does not take a known `error`: leave one of the two out.")
        with self._as_before_if_it_fails():
            X, y, error = self._checked(X, y, error, reset=True)
            self._begin(X)
            self._warn_of_rows(X, y, error)
            self.takes_levels_ = levels_help(self, X, y, error)
            if self.tile_size == "auto":
                self.tile_size_ = best_tile_size(self, X, y, error)
            if finetune:
                options = {"coords": self.coords, "normalize": self.normalize, "progress": self.progress}
                places, z = self._columns.split(X)
                rest = [values - Drift(self._system, places, z, values)(z) for values, _ in self._groups(y)]
                if self.takes_levels_:
                    rest = [levels_of(self._system, places, values)[1] for values in rest]
                self.finetuned_ = train_on_gaps(
                    self.model_,
                    places,
                    np.concatenate(rest, axis=1),
                    steps=finetune,
                    gaps=gaps,
                    size=self.tile_size_,
                    **options,
                )
                self.model_ = better(self, self.finetuned_, X, y)
            self._keep(X.copy(), y, error)
            self._check_scale()
            self._warn_of_strays()
            return self

    def update(self, X, y, *, error=None) -> "NeuralProcessRegressor":
        """Adds observations to those in use, as `fit` on all of them; a model that was fine-tuned stays as it is.

        `X`, `y`, `error`: as in `fit`. **Raises** `ValueError` where `y` has other columns than it had there."""
        check_is_fitted(self)
        self._check_options()
        with self._as_before_if_it_fails():
            X, y, error = self._checked(X, y, error, reset=False)
            if y.shape[1:] != self.y_.shape[1:]:
                shape = ("n", *self.y_.shape[1:])
                raise ValueError(f"`y` must have the columns that it had in `fit`: shape {shape}, got {y.shape}.")
            error = joined(self.error_, self.y_, error, y)
            X, y = np.concatenate([self.X_, X]), np.concatenate([self.y_, y])
            self._warn_of_rows(X, y, error)
            return self._keep(X, y, error)

    def predict(self, X, return_std=False, return_cov=False, include_noise=True):
        """The mean at the rows of `X`, and with it the standard deviation or the joint covariance if asked for.

        **Arguments:** `include_noise`: of a new observation (True) or of the noiseless function, where the model's
        likelihood tells them apart (`FunctionAndNoise`, that of the pretrained models; a warning says where not).
        `return_std`, `return_cov`: at most one of them (`ValueError` for both).

        **Returns:** `mean`, `(mean, std)` or `(mean, cov)`. Of the shape of `y`: `mean` and `std [n]` or `[n dy]`;
        `cov [n n]` or `[n n dy]`; its cost and its limit on `n` are those of `npax.inference.covariance`.
        """
        true_or_false(include_noise=include_noise)
        refuse_both(return_std, return_cov)
        X = self._targets(X)
        if return_cov:
            check_joint(len(X))
        predictor = self._predictor()
        prediction = predictor(X)
        mean = self._like_y(prediction.mean)
        if return_std or return_cov:
            warn_of_noise(self.model_.likelihood, include_noise)
        if return_std:
            return mean, self._like_y(prediction.std(include_noise))
        if return_cov:
            cov = covariance(predictor, X, prediction, include_noise=include_noise)
            return mean, cov if self.y_.ndim == 2 else cov[..., 0]
        return mean

    def predict_average(self, X, weights=None, return_std=False, return_cov=False):
        """Averages of the noiseless function over regions, and how certain they are (block kriging).

        ```python
        mean, std = reg.predict_average(cells, areas, return_std=True)
        mean, cov = reg.predict_average(cells, [areas * north, areas * south], return_cov=True)
        mean[0] - mean[1], np.sqrt(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])  # how they differ
        each = pd.get_dummies(table["district"]).T * table["people"]  # of each district, whose people count alike
        mean, std = reg.predict_average(table[["lon", "lat"]], each, return_std=True)
        ```

        **Arguments:** `X [n d]`: places all over the regions, such as the cells of a map; `weights`: what each counts,
        areas (on a grid of longitudes and latitudes cosines of the latitude) or people, `[n]`, or `[regions n]`; None
        for the same. Averages are divided by their sum.

        **Returns:** `mean`, `(mean, std)` or `(mean, cov)`, for one region without the axis of regions: `mean` and
        `std [regions]` or `[regions dy]`; `cov [regions regions]` or `[regions regions dy]`.

        `npax.average` takes tables and grids that name the regions. The covariance is
        `npax.inference.average_covariance`, which says what it costs. Of fields in a square that are seen 20 to 3,000
        times standard deviations of the whole, a quarter, a ninth and a 64th are 0.98 to 1.24 times (medians) those of
        the process that knows the covariance, and 95 % intervals hold 89 to 94 % (its own 89 to 98). **Pitfall:** of
        blocks much smaller than observations are apart, between drill holes say, they are too small where noise is
        strong: 0.71 times (18 blocks, exponential covariances, noise of 40 % of the variance), intervals hold 89 %.
        """
        refuse_both(return_std, return_cov)
        check_rows(X, axis=-1, weights=weights)
        X = self._targets(X)
        regions = Regions.of(weights, len(X))
        prediction = self._predictor()(X)
        mean = regions.like(self._like_y(regions.shares @ prediction.mean))
        if not (return_std or return_cov):
            return mean
        warn_of_noise(self.model_.likelihood, False)
        told = self._predictor(), X, regions.shares, prediction
        if return_std:
            return mean, regions.like(self._like_y(average_std(*told)))
        cov = average_covariance(*told)
        return mean, regions.like(cov if self.y_.ndim == 2 else cov[..., 0], axes=2)

    def predict_average_quantiles(self, X, q, weights=None) -> np.ndarray:
        """Quantiles at probabilities `q` of what `predict_average` gives, those of the normal distribution: `[regions]`
        or `[regions dy]`, then the shape of `q`."""
        levels = ndtri(probabilities(q))
        mean, std = (np.asarray(a)[..., None] for a in self.predict_average(X, weights, return_std=True))
        quantiles = mean + std * levels
        return quantiles if np.ndim(q) else quantiles[..., 0]

    def predict_quantiles(self, X, q, include_noise=True) -> np.ndarray:
        """Quantiles of the prediction at probabilities `q`: shape of `y` for the rows of `X`, then that of `q`.

        Those of the normal distribution with the predicted mean and standard deviation, also where tiles overlap or the
        model predicts a mixture or counts (which may then be negative or broken; `npax.sample` draws counts).
        """
        true_or_false(include_noise=include_noise)
        levels = probabilities(q)
        X = self._targets(X)
        warn_of_shape(self.model_.likelihood)
        warn_of_noise(self.model_.likelihood, include_noise)
        prediction = self._predictor()(X)
        mean, std = prediction.mean, prediction.std(include_noise)
        quantiles = mean[..., None] + std[..., None] * ndtri(levels)
        return self._like_y(quantiles if np.ndim(q) else quantiles[..., 0])

    def exceedance(self, X, threshold, include_noise=True) -> np.ndarray:
        """The probability that the value is above one threshold or several: shape of `y` for the rows of `X`, then that
        of `threshold`. From the normal distribution of `predict_quantiles`: of a new observation; `include_noise=False`
        is that of the noiseless function, which maps of exceedance usually show."""
        mean, std = self.predict(X, return_std=True, include_noise=include_noise)
        warn_of_shape(self.model_.likelihood)
        return exceedance(mean, std, threshold)

    def sample_y(self, X, n_samples=1, random_state=0, include_noise=True) -> np.ndarray:
        """Joint samples at the rows of `X`: `[n n_samples]` or `[n dy n_samples]`; see `npax.sample` for the method.

        **Cost** of the exact strategy: for each row, sample and column of `y` that of conditioning on observations and
        rows together; on two CPU cores, which share the samples, some 4 ms where these are 200 (100 rows, 16 samples:
        7 s), 9 ms where they are 400 and 65 ms where they are 1,100. Of the tiled strategy: three conditionings of a
        tile per row, for any number of samples, and up to 1,000 rows. For many samples of the exact strategy
        `predict(X, return_cov=True)` is cheaper, two conditionings per row, and NumPy draws from it. The estimator's
        `progress` shows a bar.

        **Pitfall:** samples of the noiseless function are jagged where noise is strong (`npax.inference.covariance` has
        figures): means over a region are about right, extremes too far out.

        **Raises** `ValueError` in tiles for models of counts, classes and whatever else may not be any real number:
        samples in tiles are Gaussian.
        """
        true_or_false(include_noise=include_noise)
        X = self._targets(X)
        warn_of_noise(self.model_.likelihood, include_noise)
        key = jr.key(seed_of(random_state, self.random_state))
        samples = joint_samples(self._predictor(), X, n_samples, key, include_noise=include_noise)
        return self._like_y(np.moveaxis(samples, 0, -1))

    def score(self, X, y, sample_weight=None) -> float:
        """The coefficient of determination of the means, of `y` of several columns the mean of theirs; rows without a
        finite value are left out, as in `fit`."""
        from sklearn.metrics import r2_score

        check_is_fitted(self)
        if sample_weight is not None:
            check_consistent_length(y, sample_weight)
            sample_weight = np.asarray(sample_weight)[finite_rows(unmasked(y))]
        X, y, _ = self._checked(X, y, None, reset=False)
        return float(r2_score(y, self._new_at(X)[0], sample_weight=sample_weight))

    def score_report(self, X, y, *, error=None) -> dict[str, float]:
        """RMSE, MAE, negative log-likelihood, CRPS, 95 % coverage and interval score on held-out observations.

        `error`: known standard errors of `y`, as in `fit`: predictions are of values that have them too.
        But for the first two those of the normal distribution with the predicted mean and standard deviation, also
        where the model predicts another, such as counts: `npax.objectives.nll` has its own likelihood.
        """
        from ..metrics import score_report

        check_is_fitted(self)
        X, y, error = self._checked(X, y, error, reset=False)
        mean, std = self._new_at(X)
        return score_report(y, mean, np.hypot(std, 0.0 if error is None else error))

    def _checked(self, X, y, error, *, reset):
        """Rows in use: float64, all finite."""
        check_order(y=y, error=error)
        check_rows(X, y=y)
        of_y = {"ensure_2d": False, "ensure_all_finite": False, "dtype": "numeric"}
        X, y = self._valid(X, y, reset=reset, validate_separately=({"dtype": np.float64}, of_y))
        y = y.astype(np.float64)
        check_consistent_length(X, y)
        error = None if error is None else like(y, error)
        finite = finite_rows(y)
        if finite.all():
            return X, y, error
        lost = f"{np.sum(~finite)} of {len(y)} rows of `y` hold NaN or infinity"
        if self.on_missing == "raise" or (reset and not finite.any()):
            remedy = "Remove them" + (', or pass `on_missing="drop"`.' if self.on_missing == "raise" else ".")
            if np.isfinite(y).any() and not finite.any():
                remedy = "Fit each column by itself (`npax.interpolate` does), with a model of one column."
            raise ValueError(f"{lost}. {remedy}")
        others = int(np.sum(np.isfinite(y[~finite])))
        beside = (
            f", {others} known values of other columns with them: fit each column by itself, with a model of one column"
            if others
            else ""
        )
        warn(f"{lost}; they are left out{beside}.", DroppedRows)
        return X[finite], y[finite], None if error is None else error[finite]

    def _check_options(self):
        for name, value, allowed in (
            ("strategy", self.strategy, ("auto", "exact", "tiled")),
            ("on_missing", self.on_missing, ("drop", "raise")),
        ):
            if value not in allowed:
                raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
        check_views(self.views)
        true_or_false(normalize=self.normalize, levels=self.levels, progress=self.progress)
        check_tile_size(self.tile_size)

    def _begin(self, X):
        """Sets what is known before the values are: the model, and what the columns are."""
        self._check_columns(X)
        self.coords_ = self.coords
        self.model_, self.finetuned_ = model_of(self.model, self.normalize), None
        self.takes_levels_ = False
        self.tile_size_ = USUAL if self.tile_size == "auto" else self.tile_size
        if self._columns.covariates:
            refuse_drift(self.model_.likelihood)

    def _check_columns(self, X):
        names: list[Hashable] = [*getattr(self, "feature_names_in_", ())]
        self._names = names
        self._columns = columns(self.covariates, names, X.shape[1])
        of_places = [names[i] for i in self._columns.places if names]
        if self.coords == "latlon":
            refuse_latitude_first(of_places)
        else:
            warn_of_degrees(of_places, X[:, self._columns.places])

    def _warn_of_rows(self, X, y, error):
        self._warn_of_codes(X, y)
        if error is not None:
            warn_of_large_errors(y.reshape(len(y), -1), error.reshape(len(y), -1))
        if of_real_numbers(self.model_.likelihood):  # counts come again
            warn_of_copies(X, y)

    def _warn_of_strays(self):
        in_one = self.strategy_ == "exact" or len(self.X_) <= self.tile_size_  # tiles see those around them
        if in_one and self._observed.normalize:
            of_x = self._columns_of(self.X_)
            warn_of_strays(dict(of_x[i] for i in self._columns.places))

    def _columns_of(self, X):
        """What to call them, and their values."""
        return [(f"Column {self._names[i] if self._names else i!r} of `X`", column) for i, column in enumerate(X.T)]

    def _called(self, levels):
        """Names, or else numbers, of the columns of `X` that levels are of."""
        columns = [self._columns.places[i] for i in levels.columns]
        return tuple(self._names[i] if self._names else i for i in columns)

    def _warn_of_codes(self, X, y, exposure=None):
        of_y = y.reshape(len(y), -1).T
        columns = {f"Column {i} of `y`" if len(of_y) > 1 else "`y`": column for i, column in enumerate(of_y)}
        of_x = self._columns_of(X)
        columns |= {} if exposure is None else {"`exposure`": exposure}
        warn_of_codes(columns | dict(of_x[i] for i in self._columns.covariates))
        warn_of_codes(dict(of_x[i] for i in self._columns.places), coordinates=True)

    def _check_scale(self):
        if not (self.normalize and of_real_numbers(self.model_.likelihood)):
            return
        columns = self.y_.reshape(len(self.y_), -1).T
        known = np.zeros(columns.shape) if self.error_ is None else self.error_.reshape(len(self.y_), -1).T
        for i, column in enumerate(columns):
            if len(column) > 1 and (known[i] > 0).all():
                continue
            where = "`y`" if len(columns) == 1 else f"column {i} of `y`"
            remedy = "Give it in a unit in which deviations of about 1 are usual (of logarithms: a factor of 3)."
            warn_of_no_scale(column, f"All values of {where}", remedy)

    def _targets(self, X):
        check_is_fitted(self)
        X = self._valid(X, reset=False, dtype=np.float64, ensure_min_samples=0)
        self._warn_of_far(X)
        return X

    def _new_at(self, X):
        """Mean and standard deviation of new observations at rows that were checked."""
        self._warn_of_far(X)
        prediction = self._predictor()(X)
        return self._like_y(prediction.mean), self._like_y(prediction.std())

    def _warn_of_far(self, X, n=None):
        warn_of_extrapolation(self._observed.outside, X, self._names, n)
        covariates = [self._names[i] if self._names else i for i in self._columns.covariates]
        warn_of_other_covariates(self._observed.unlike(X), covariates, n)

    def _valid(self, X, *y, **rules) -> Any:
        X, *y = map(unmasked, (X, *y))
        for name, given in zip(("`X`", "`y`"), (X, *y), strict=False):
            refuse_dates_in(given, name)
            refuse_text(given, name)
        try:
            return validate_data(self, X, *y, **rules)
        except ValueError as error:
            if "contains NaN" in str(error) or "contains infinity" in str(error):
                values = check_array(X, dtype="float64", ensure_all_finite=False)
                refuse_missing(values, getattr(X, "columns", range(values.shape[1])), "`X`")
            raise

    @contextlib.contextmanager
    def _as_before_if_it_fails(self):
        """Whatever ends a `fit` leaves the estimator as the last one left it."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _keep(self, X, y, error=None, *, noise=True):
        check_error(self.model_, error, y)
        groups = self._groups(y, error)
        for values, _ in groups:
            refuse_impossible(self.model_.likelihood, values)
        options = {"normalize": self.normalize, "average": self.strategy == "auto", "size": self.tile_size_}
        options |= {"noise": noise, "levels": self.takes_levels_}
        self._observed = Observed.of(self.model_, self._system, self._columns, X, groups, **options)
        self.X_, self.y_, self.error_, self._predictors = X, y, error, {}
        self.averaged_ = np.array([seen.number for seen in self._observed.each])
        self.levels_ = [[self._called(levels) for levels in seen.levels] for seen in self._observed.each]
        of_each = [(seen.drift.coef, seen.drift.coef_std) for seen in self._observed.each]
        slopes = [np.concatenate(parts) for parts in zip(*of_each, strict=True)]
        self.coef_, self.coef_std_ = slopes if y.ndim == 2 else (column[0] for column in slopes)
        of_task = {"observations": self._observed.number, "columns": self._observed.d}
        name = self.model if self.normalize else None
        self._network = in_views(self.views, self.model_, name, **of_task)
        self.views_ = number_of_views(self._network)
        self._predictor()
        return self

    def _request(self):
        """What predictions depend on, beside the strategy."""
        observed = self.X_, self.y_, self.error_
        how = self.covariates, self.coords, self._observed.normalize, self.averaged_, self.levels_, self.tile_size_
        return self._network, observed, *how

    @property
    def _system(self):
        return coordinates(self.coords_)

    def _take_tiles(self, size: int):
        """As if `fit` had taken tiles of this size."""
        if size != self.tile_size_:
            self.tile_size_, self._observed, self._predictors = size, self._observed.with_tiles(size), {}

    def _tell_noise(self, noise: Noise | None):
        """What is predicted has this noise, and not the one of what the network sees."""
        each = [seen._replace(noise=noise) for seen in self._observed.each]
        self._observed, self._predictors = self._observed._replace(each=each), {}

    def _groups(self, y, error=None):
        """The columns of `y` that the model takes together, `[n dy]`, and their known errors, if any."""
        values = grouped(self.model_, y.reshape(len(y), -1))
        errors = [None] * len(values) if error is None else grouped(self.model_, error.reshape(len(y), -1))
        return list(zip(values, errors, strict=True))

    def _predictor(self) -> Predictor:
        """What answers."""
        self._check_options()  # `set_params` may have changed them
        strategy = self._observed.strategy if self.strategy == "auto" else self.strategy
        self.strategy_ = strategy
        if strategy not in self._predictors:
            kind = Exact if strategy == "exact" else partial(Tiled, size=self.tile_size_)
            options = {"progress": self.progress, "normalize": self._observed.normalize}
            each = [seen.predictor(kind, self._network, self._columns, **options) for seen in self._observed.each]
            self._predictors[strategy] = each[0] if len(each) == 1 else ByColumn(each)
        return self._predictors[strategy]

    def _like_y(self, a):
        """`a [n dy ...]` without the axis of columns where `y` came without it."""
        return a if self.y_.ndim == 2 else a[:, 0]
