"""Image completion: every value is that of the pixel at its coordinates, and sizes are those of the papers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from npax.tasks import (
    ContextAmongTargets,
    ContextAndRest,
    ImageTask,
    NestedSizes,
    TranslatedImageTask,
    image_completion,
    image_completion_anp,
    image_completion_kr1,
    pixel_coordinates,
    translated_images,
)

CHOICES = {
    "among": ContextAmongTargets(nc=5, low=2, nt=9),
    "all": ContextAmongTargets(nc=5, low=2),
    "nested": NestedSizes(points=12, low=3),
    "rest": ContextAndRest(nc=7, low=2),
    "some": ContextAndRest(nc=7, low=2, nt=4),
    "scarce": ContextAndRest(nc=18, low=15, nt=4),
}
PIXELS, DRAWS = 20, 200
SMALL = np.zeros((1, 8, 8), np.uint8)


@pytest.fixture(scope="module")
def images():
    """Wider than high, in colour, no two values of an image alike."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(6 * 7 * 3).reshape(6, 7, 3) * 2 + i for i in range(2)]).astype(np.uint8)


def sizes(mask):
    return np.asarray(mask).sum(axis=1)


@pytest.fixture(params=CHOICES, scope="module")
def chosen(request):
    choice = CHOICES[request.param]
    draw = jax.jit(jax.vmap(lambda key: choice.draw(key, PIXELS)))
    return request.param, jax.tree.map(np.asarray, draw(jr.split(jr.key(0), DRAWS)))


def test_no_pixel_is_seen_or_asked_for_twice(chosen):
    _, drawn = chosen
    for indices, mask in ((drawn.context, drawn.mask_c), (drawn.targets, drawn.mask_t)):
        for row, counted in zip(indices, mask, strict=True):
            taken = row[counted]
            assert len(set(taken)) == len(taken) and taken.min(initial=0) >= 0 and taken.max(initial=0) < PIXELS


def test_the_context_is_among_the_targets_or_apart_from_them(chosen):
    name, drawn = chosen
    for context, mask_c, targets, mask_t in zip(*drawn, strict=True):
        seen, asked = set(context[mask_c]), set(targets[mask_t])
        if name == "rest":
            assert not seen & asked and seen | asked == set(range(PIXELS))
        elif name in ("some", "scarce"):
            assert not seen & asked and len(asked) == mask_t.sum()
        else:
            assert seen <= asked


def test_sizes_take_every_value_they_may_and_no_other(chosen):
    name, drawn = chosen
    n, m = sizes(drawn.mask_c), sizes(drawn.mask_t)
    low, high = {"among": (2, 5), "all": (2, 5), "nested": (3, 12), "rest": (2, 7), "some": (2, 7), "scarce": (15, 18)}[
        name
    ]
    assert set(n) == set(range(low, high + 1))
    if name == "nested":
        assert (m >= n).all() and m.max() == 12 and (m > n).any()
    else:
        left = PIXELS - n
        expected = {"among": 9, "all": PIXELS, "rest": left, "some": 4, "scarce": np.minimum(left, 4)}[name]
        assert (m == expected).all()


def test_all_pixels_are_alike_probable(chosen):
    _, drawn = chosen
    counts = np.bincount(drawn.context[drawn.mask_c], minlength=PIXELS)
    expected = counts.sum() / PIXELS
    assert np.sum((counts - expected) ** 2 / expected) < 50  # chi squared, 19 degrees of freedom


def test_values_are_those_of_the_pixels_at_their_coordinates(images):
    tasks = ImageTask(images, NestedSizes(points=30, low=3))
    spacing = 4 / 7
    sample = eqx.filter_jit(tasks.sample)
    for key in jr.split(jr.key(0), 5):
        task = sample(key)
        place = np.rint(np.asarray(task.xc) / spacing + [2.5, 3.0]).astype(int)
        np.testing.assert_allclose(np.asarray(task.xc), (place - [2.5, 3.0]) * spacing, atol=1e-6)
        byte = np.rint((np.asarray(task.yc) + 1) * 255 / 2)
        matches = [np.array_equal(image[tuple(place.T)], byte) for image in images]
        assert sum(matches) == 1
        transposed = [np.array_equal(image[tuple(place.T[::-1] % 6)], byte) for image in images]
        assert not any(transposed)


def test_a_finer_lattice_fills_the_same_square():
    coarse, fine = pixel_coordinates(4, 4, 1.0), pixel_coordinates(32, 32, 1 / 8)
    for x, spacing in ((coarse, 1.0), (fine, 1 / 8)):
        assert np.allclose(np.asarray(x).min(axis=0) - spacing / 2, -2) and np.allclose(x.max(axis=0) + spacing / 2, 2)
    means = np.asarray(fine).reshape(4, 8, 4, 8, 2).mean(axis=(1, 3)).reshape(-1, 2)
    np.testing.assert_allclose(means, coarse, atol=1e-6)
    x = np.asarray(coarse).reshape(4, 4, 2)
    assert (np.diff(x[..., 0], axis=0) == 1).all() and (np.diff(x[..., 1], axis=1) == 1).all()


def test_the_tasks_of_the_papers_have_their_sizes_and_ranges():
    images = np.full((1, 28, 28), 255, np.uint8)
    images[0, 0, 0] = 0
    for tasks, slots, asked, half, high in (
        (image_completion(images), 128, 256, 2.0, 1.0),
        (image_completion_kr1(images), 100, 200, 2.0, 1.0),
        (image_completion_anp(images), 200, 200, 1.0, 0.5),
        (translated_images(images), 3136 // 3, 3136 - 31, 2.0, 1.0),
    ):
        task = jax.eval_shape(tasks.sample, jr.key(0))
        assert task.xc.shape == (slots, 2) and task.yt.shape == (asked, 1)
        task = eqx.filter_jit(tasks.sample)(jr.key(0))
        assert 0.8 * half < np.abs(task.xt).max() < half and task.yt.max() == pytest.approx(high)


def test_a_translated_image_moves_as_a_whole(images):
    """On the canvas the picture is found at one place, whole; elsewhere it is black. All places occur."""
    images = images + np.uint8(1)
    tasks = TranslatedImageTask(images, ContextAndRest(nc=12, low=2), values=(0.0, 255.0))
    sample, corners = eqx.filter_jit(tasks.sample), set()
    for key in jr.split(jr.key(3), 60):
        task = sample(key)
        canvas = np.full((12, 14, 3), -1.0)
        for x, y, mask in ((task.xc, task.yc, task.mask_c), (task.xt, task.yt, task.mask_t)):
            place = np.rint(np.asarray(x)[mask] / (4 / 14) + [5.5, 6.5]).astype(int)
            canvas[tuple(place.T)] = np.asarray(y)[mask]
        assert (canvas >= 0).all()  # every pixel is context or target
        rows, columns = np.nonzero(canvas[..., 0])
        corner = rows.min(), columns.min()
        corners.add(corner)
        part = canvas[corner[0] : corner[0] + 6, corner[1] : corner[1] + 7]
        assert sum(np.allclose(part, image, atol=0.01) for image in images) == 1
        assert np.count_nonzero(canvas[..., 0]) == 42
    assert {row for row, _ in corners} == set(range(7)) and {column for _, column in corners} == set(range(8))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ContextAmongTargets(nc=5, low=6), "low=6, nc=5"),
        (lambda: ContextAmongTargets(nc=5, low=1, nt=4), "nt=4"),
        (lambda: NestedSizes(points=3, low=4), "low=4, points=3"),
        (lambda: ContextAndRest(nc=3, low=-1), "low=-1"),
        (lambda: ContextAndRest(nc=3, low=1, nt=0), "nt=0"),
        (lambda: image_completion(np.zeros((2, 28, 28), np.float32)), "float32"),
        (lambda: image_completion(np.zeros((0, 28, 28), np.uint8)), r"\(0, 28, 28, 1\)"),
        (lambda: image_completion(SMALL).sample(jr.key(0)), "256 pixels, and the picture has 64"),
        (lambda: ImageTask(SMALL, ContextAndRest(nc=65, low=1)).sample(jr.key(0)), "65 pixels, and the picture has 64"),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_what_is_hidden_changes_with_the_key(images):
    tasks = ImageTask(images, CHOICES["among"])
    sample = eqx.filter_jit(tasks.sample)
    a, b, again = (sample(jr.key(seed)) for seed in (0, 1, 0))
    assert jnp.array_equal(a.xc, again.xc) and jnp.array_equal(a.yt, again.yt) and not jnp.array_equal(a.xc, b.xc)
