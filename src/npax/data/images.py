"""Images that the user has on disk: nothing of them comes with the package."""

import dataclasses
import hashlib
import io
import itertools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from ..warn import warn
from .on_disk import find


class Images(NamedTuple):
    """Bytes, `[n rows columns channels]`, in the data set's own split."""

    train: UInt8[np.ndarray, "train rows columns channels"]
    test: UInt8[np.ndarray, "test rows columns channels"]


@dataclasses.dataclass(frozen=True)
class ImageFile:
    """A data set as one `.npz` file: how to read it, what it looks like, what one may do with it.

    `shape` is that of one image, `sha256` that of the file that our figures are from.
    """

    title: str
    name: str
    shape: tuple[int, int, int]
    sha256: str
    contents: str
    licence: str
    decode: Callable[[np.lib.npyio.NpzFile, str], np.ndarray]

    def read(self, path: str | Path | None) -> Images:
        """From a file, or from the folder that holds it (default: that of the environment variable NPAX_DATA).

        **Raises:** `FileNotFoundError` where it is not there, `ValueError` where it does not hold such images. Warns
        where it is not the file that our figures are from.
        """
        path = find(self.name, self.title, self.contents, self.licence, path)
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            warn(
                f"'{path}' is not the file of {self.title} that the published figures of npax are from "
                f"(its SHA-256 does not begin with {self.sha256[:12]}): results may differ.",
            )
        try:
            with np.load(io.BytesIO(content)) as file:
                images = Images(*(self._checked(self.decode(file, part)) for part in ("train", "test")))
        except (KeyError, ValueError, IndexError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"'{path}' does not hold the images of {self.title}: {error}. It takes {self.contents}."
            ) from error
        return images

    def _checked(self, images):
        images = images[..., None] if images.ndim == 3 else images
        if images.dtype != np.uint8 or images.shape[1:] != self.shape or not len(images):
            raise ValueError(f"its images are {images.dtype} {images.shape}, not uint8 (n, {str(self.shape)[1:]}")
        return images


def _plain(file, part):
    return file[f"x_{part}"]


def _jpeg(file, part):
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("Decoding these images needs Pillow: pip install 'npax[tasks]'.") from error
    data, offset = file[f"jpeg_{part}"], file[f"offset_{part}"]
    return np.stack(
        [
            np.asarray(Image.open(io.BytesIO(data[start:end].tobytes())).convert("RGB"))
            for start, end in itertools.pairwise(offset)
        ]
    )


MNIST = ImageFile(
    title="MNIST",
    name="mnist.npz",
    shape=(28, 28, 1),
    sha256="06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
    contents="arrays x_train [60000, 28, 28] and x_test [10000, 28, 28] of bytes",
    licence="MNIST states none of its own that forbids use (LeCun, Cortes, Burges)",
    decode=_plain,
)
CELEBA32 = ImageFile(
    title="CelebA at 32 x 32",
    name="celeba32.npz",
    shape=(32, 32, 3),
    sha256="7463a71e770b2548f7a06e7b38935d7fd9338fe119f273efc600cdb07e57b6ea",
    contents="arrays x_train and x_test [n, 32, 32, 3] of bytes",
    licence="CelebA is for non-commercial research only and not to be redistributed (Liu et al. 2015, MMLAB, CUHK)",
    decode=_plain,
)
CIFAR10 = ImageFile(
    title="CIFAR-10",
    name="cifar10_jpeg.npz",
    shape=(32, 32, 3),
    sha256="40998d72431d2dcf5701fb26786c62e51111766b2d00f34a3702326cf909e751",
    contents="arrays jpeg_train, jpeg_test of JPEG bytes, one image after another, and offset_train, offset_test",
    licence="CIFAR-10 states none (Krizhevsky 2009); cite its author",
    decode=_jpeg,
)


def mnist(path: str | Path | None = None) -> Images:
    """MNIST: 60,000 and 10,000 digits of 28 x 28 pixels, one channel. See `ImageFile.read` for `path` and errors."""
    return MNIST.read(path)


def celeba32(path: str | Path | None = None) -> Images:
    """CelebA: faces of 32 x 32 pixels, three channels; non-commercial research only. See `ImageFile.read`.

    Figures of npax are from the first 10,000 images, 8,000 of them for training: not the official split.
    """
    return CELEBA32.read(path)


def cifar10(path: str | Path | None = None) -> Images:
    """CIFAR-10: 50,000 and 10,000 images of 32 x 32 pixels, three channels. See `ImageFile.read`. Needs Pillow.

    The file holds JPEG, which is lossy: likelihoods are not comparable with published ones to the last digit.
    """
    return CIFAR10.read(path)
