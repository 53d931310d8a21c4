"""Training: `fit`, optimisers, checkpoints."""

import importlib
from typing import TYPE_CHECKING

from .checkpoint import DamagedFile as DamagedFile
from .finetune import finetune as finetune
from .finetune_pictures import finetune_pictures as finetune_pictures
from .fit import FitResult as FitResult, fit as fit
from .gaps import AbstractGaps as AbstractGaps, MovedGaps as MovedGaps, RoundGaps as RoundGaps
from .held_out import Finetuned as Finetuned
from .optimizers import (
    adamw as adamw,
    muon as muon,
    warmup_cosine as warmup_cosine,
    warmup_stable_decay as warmup_stable_decay,
    yogi as yogi,
)

if TYPE_CHECKING:
    from . import presets as presets


def __getattr__(name):
    """Presets when they are asked for: they load models, whose file format needs the one of checkpoints."""
    if name == "presets":
        return importlib.import_module(f"{__name__}.presets")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
