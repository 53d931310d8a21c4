"""Image completion: an image is a function from the places of pixels to their values."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, ArrayLike, Float, UInt8

from ._base import AbstractTasks
from .pixels import AbstractPixelChoice, ContextAmongTargets, ContextAndRest, NestedSizes, pixel_coordinates, pixel_task

Images = UInt8[Array, "n rows columns dy"]


def checked(images: ArrayLike) -> Images:
    images = jnp.asarray(images)
    images = images[..., None] if images.ndim == 3 else images
    if images.dtype != jnp.uint8 or images.ndim != 4 or 0 in images.shape:
        raise ValueError(
            "`images` must be bytes (uint8) of the shape [n, rows, columns] or [n, rows, columns, channels], "
            f"at least one of them; got {images.dtype} {images.shape}."
        )
    return images


class ImageTask(AbstractTasks):
    r"""Some pixels of an image are seen, others are asked for; the images are on the device, each drawn alike often.

    **Arguments:** `images [n rows columns dy]` (or without the last axis: one channel), bytes; `choice`: which pixels
    are context and targets; `half`: the longer side of the image spans [-`half`, `half`]; `values`: what 0 and 255
    become. **Shapes:** two columns of `x` (`pixel_coordinates`), `dy` channels of `y`.
    **Good values:** a model whose standard deviation is bounded from below, `HeteroscedasticGaussian(dy, 0.05)`: the
    values are known without noise.
    """

    images: Images = eqx.field(converter=checked)
    choice: AbstractPixelChoice
    half: float = eqx.field(static=True, default=2.0)
    values: tuple[float, float] = eqx.field(static=True, default=(-1.0, 1.0))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.images.shape[1], self.images.shape[2]

    def sample(self, key):
        image_key, choice_key = jr.split(key)
        rows, columns = self.shape
        x = pixel_coordinates(rows, columns, 2 * self.half / max(rows, columns))
        y = scaled(_one(self.images, image_key), self.values).reshape(len(x), -1)
        return pixel_task(x, y, self.choice.draw(choice_key, len(x)))


class TranslatedImageTask(AbstractTasks):
    r"""Images at a random place of a black canvas of twice their sides (T-MNIST and T-CIFAR-10 of TE F.2).

    What is learned of an image in one place holds in every other: a test of translation equivariance. Each draw has a
    place of its own; TE moves every image of the training set once, which leaves more to be learned to models that are
    not equivariant.

    **Arguments:** as for `ImageTask`; `half`: the longer side of the *canvas* spans [-`half`, `half`].
    **Good values:** TE has one learned standard deviation, `HomoscedasticGaussian(dy)`.
    """

    images: Images = eqx.field(converter=checked)
    choice: AbstractPixelChoice
    half: float = eqx.field(static=True, default=2.0)
    values: tuple[float, float] = eqx.field(static=True, default=(0.0, 1.0))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the canvas."""
        return 2 * self.images.shape[1], 2 * self.images.shape[2]

    def sample(self, key):
        image_key, place_key, choice_key = jr.split(key, 3)
        rows, columns = self.shape
        x = pixel_coordinates(rows, columns, 2 * self.half / max(rows, columns))
        corner = jr.randint(place_key, (2,), 0, jnp.array([rows // 2 + 1, columns // 2 + 1]))
        canvas = jnp.zeros((rows, columns, self.images.shape[3]), jnp.uint8)
        canvas = jax.lax.dynamic_update_slice(canvas, _one(self.images, image_key), (*corner, 0))
        return pixel_task(x, scaled(canvas, self.values).reshape(len(x), -1), self.choice.draw(choice_key, len(x)))


def image_completion(images: ArrayLike) -> ImageTask:
    """Image completion of KR2: 256 pixels, of which 16 to 128 are seen; coordinates in [-2, 2], values in [-1, 1], the
    scale on which the likelihood depends (no paper gives it; that of the authors' public configurations)."""
    return ImageTask(images, ContextAmongTargets(nc=128, low=16, nt=256))


def image_completion_kr1(images: ArrayLike) -> ImageTask:
    """Image completion of KR1: 200 pixels, of which 3 to 100 are seen; batches of 32."""
    return ImageTask(images, ContextAmongTargets(nc=100, low=3, nt=200))


def image_completion_anp(images: ArrayLike) -> ImageTask:
    """Image completion of ANP: 3 to 200 pixels are seen and up to 200 are targets; coordinates in [-1, 1], values in
    [-0.5, 0.5]."""
    return ImageTask(images, NestedSizes(points=200, low=3), half=1.0, values=(-0.5, 0.5))


def translated_images(images: ArrayLike, *, nt: int | None = None) -> TranslatedImageTask:
    """T-MNIST and T-CIFAR-10 of TE: of the N pixels of the canvas N / 100 to N / 3 are seen, the others are targets,
    or `nt` of them. The canvas spans [-2, 2], black is 0 and white 1 (scale and lower end are ours; the paper does not
    tell them)."""
    images = checked(images)
    pixels = 4 * images.shape[1] * images.shape[2]
    return TranslatedImageTask(images, ContextAndRest(nc=pixels // 3, low=pixels // 100, nt=nt))


def scaled(image: UInt8[Array, "*shape"], values: tuple[float, float]) -> Float[Array, "*shape"]:
    """Bytes as numbers: 0 becomes the first of `values`, 255 the second."""
    low, high = values
    return low + (high - low) / 255 * image.astype(jnp.float32)


def _one(images, key):
    return jax.lax.dynamic_index_in_dim(images, jr.randint(key, (), 0, images.shape[0]), keepdims=False)
