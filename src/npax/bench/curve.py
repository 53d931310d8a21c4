import json
import time
from pathlib import Path

from ..files import write_atomically
from ..task import Task
from ..tasks import AbstractTasks
from ..training.checkpoint import newest
from ..training.fit import unstack
from .scores import mean_and_error, score_model


class Curve:
    """The learning curve of a run and its seconds, on disk beside the checkpoints: a killed run keeps both, but for the
    seconds since its last point.

    **Arguments:** `folder`: of the checkpoints; `tasks`, `batch`: what is scored; `every`: training steps between two
    points; `steps`, `seeds`: of the training.
    **Attributes:** `points`: pairs of training steps and the NLL of each seed; `seconds`: wall-clock time of the
    training, all calls together, without that of the scores.
    """

    def __init__(self, folder: Path, tasks: AbstractTasks, batch: Task, *, every: int, steps: int, seeds: int):
        self.path, self.tasks, self.batch = folder / "curve.json", tasks, batch
        self.every, self.steps, self.seeds = every, steps, seeds
        saved = newest(folder)  # where `fit` goes on
        self.step = 0 if saved is None else saved[2]["step"]
        self.points, self.seconds = [], 0.0
        if saved and self.path.exists():
            stored = json.loads(self.path.read_text())
            self.points = [(step, nll) for step, nll in stored["points"] if step <= self.step]
            self.seconds = stored["seconds"]
        self.finished = self.step >= steps
        self.since = time.monotonic()

    def add(self, model) -> None:
        """For `fit` to call every `every` steps and at the end."""
        self.save()
        self.step = min((self.step // self.every + 1) * self.every, self.steps)
        if self.points and self.points[-1][0] == self.step:
            return  # the training is finished, perhaps that of another table, whose curve this is
        try:
            models = unstack(model, self.seeds)
            nll = [mean_and_error(score_model(self.tasks, self.batch, one)["nll"])[0] for one in models]
        finally:
            self.since = time.monotonic()
        self.points = [*(point for point in self.points if point[0] < self.step), (self.step, nll)]
        self.save()

    def save(self) -> None:
        """Writes what there is: before each new point, which takes a while, after it, and when the training ends."""
        if not self.finished:
            self.seconds += time.monotonic() - self.since
        self.since = time.monotonic()
        write_atomically(self.path, json.dumps({"seconds": self.seconds, "points": self.points}).encode())
