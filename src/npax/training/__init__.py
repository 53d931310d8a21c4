"""Training: `fit`, optimisers, checkpoints."""

from ..packed import DamagedFile as DamagedFile
from . import presets as presets
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
