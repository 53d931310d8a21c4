"""Distributions over tasks: pure functions of a key."""

from ._base import AbstractTasks as AbstractTasks
from .array import ArrayTask as ArrayTask
from .curriculum import Curriculum as Curriculum, Stage as Stage
from .directory import from_directory as from_directory
from .fields import FieldPrior as FieldPrior, Picture as Picture, matern_field as matern_field
from .gp import (
    AbstractGPTask as AbstractGPTask,
    GPPosteriorTask as GPPosteriorTask,
    GPTask as GPTask,
    gp_1d as gp_1d,
    gp_2d as gp_2d,
)
from .gp_anp import GPCurveTask as GPCurveTask, gp_1d_anp as gp_1d_anp
from .gp_kernels import (
    AbstractKernelPrior as AbstractKernelPrior,
    Matern32Prior as Matern32Prior,
    PeriodicPrior as PeriodicPrior,
    RBFPeriodicMatern52Prior as RBFPeriodicMatern52Prior,
    RBFPrior as RBFPrior,
    ScaledRBFPrior as ScaledRBFPrior,
)
from .gp_shift import (
    GPShiftTask as GPShiftTask,
    gp_1d_bimodal as gp_1d_bimodal,
    gp_1d_shift as gp_1d_shift,
)
from .gridded import (
    CENTRAL_EUROPE as CENTRAL_EUROPE,
    NORTHERN_EUROPE as NORTHERN_EUROPE,
    WESTERN_EUROPE as WESTERN_EUROPE,
    GriddedTask as GriddedTask,
    Region as Region,
    gridded as gridded,
)
from .image import (
    ImageTask as ImageTask,
    TranslatedImageTask as TranslatedImageTask,
    image_completion as image_completion,
    image_completion_anp as image_completion_anp,
    image_completion_kr1 as image_completion_kr1,
    translated_images as translated_images,
)
from .kolmogorov import (
    KolmogorovTask as KolmogorovTask,
    kolmogorov_flow as kolmogorov_flow,
    velocity_of as velocity_of,
    vorticity_of as vorticity_of,
)
from .moved_gaps import HiddenPixels as HiddenPixels, MovedGapsTask as MovedGapsTask
from .pixels import (
    AbstractPixelChoice as AbstractPixelChoice,
    ContextAmongTargets as ContextAmongTargets,
    ContextAndRest as ContextAndRest,
    NestedSizes as NestedSizes,
    pixel_coordinates as pixel_coordinates,
)
from .posterior import PosteriorTask as PosteriorTask
from .prior import AsPrior as AsPrior, GPPrior as GPPrior
from .scaling import Scaling as Scaling
from .sir import SIRForecastTask as SIRForecastTask, SIRTask as SIRTask, sir_lattice as sir_lattice
from .stations import StationTask as StationTask, days as days, neighbourhoods as neighbourhoods
