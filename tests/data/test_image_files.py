"""Readers of images that do not come with the package, on small stand-ins."""

import dataclasses
import io
import sys
import warnings

import numpy as np
import pytest

from npax.data import images


@pytest.fixture
def pictures(rng):
    return {f"x_{part}": rng.integers(0, 256, (n, 28, 28), np.uint8) for part, n in (("train", 5), ("test", 3))}


def written(path, arrays):
    np.savez(path, **arrays)
    return path


@pytest.fixture
def known(monkeypatch):
    """Makes the file at hand the known one."""

    def name(kind, path):
        sha256 = images.hashlib.sha256(path.read_bytes()).hexdigest()
        monkeypatch.setattr(images, kind, dataclasses.replace(getattr(images, kind), sha256=sha256))

    return name


def test_images_are_found_by_file_by_folder_and_by_variable(pictures, known, tmp_path, monkeypatch):
    path = written(tmp_path / "mnist.npz", pictures)
    known("MNIST", path)
    for read in (lambda: images.mnist(path), lambda: images.mnist(tmp_path)):
        found = read()
        np.testing.assert_array_equal(found.train[..., 0], pictures["x_train"])
        np.testing.assert_array_equal(found.test[..., 0], pictures["x_test"])
    monkeypatch.setenv("NPAX_DATA", str(tmp_path))
    assert images.mnist().train.shape == (5, 28, 28, 1)


@pytest.mark.parametrize(
    ("read", "name"), [(images.mnist, "MNIST"), (images.celeba32, "CelebA"), (images.cifar10, "CIFAR")]
)
def test_a_missing_file_says_which_where_and_under_what_licence(read, name, tmp_path, monkeypatch):
    for variable, argument in (("", None), ("", tmp_path), (str(tmp_path), None), ("", tmp_path / "other.npz")):
        monkeypatch.setenv("NPAX_DATA", variable)
        with pytest.raises(FileNotFoundError) as error:
            read(argument)
        text = str(error.value)
        assert ".npz" in text and "NPAX_DATA" in text and "--data" in text and f"Licence: {name}" in text
    if name == "CelebA":
        assert "non-commercial" in text


def test_another_file_than_the_known_one_is_read_with_a_warning(pictures, known, tmp_path):
    path = written(tmp_path / "mnist.npz", pictures)
    with pytest.warns(UserWarning, match="SHA-256 does not begin with 06af5dfe73b7"):
        images.mnist(path)
    known("MNIST", path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images.mnist(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays: {"x_train": arrays["x_train"]}, "x_test"),
        (lambda arrays: {**arrays, "x_test": arrays["x_test"][:, :27]}, r"uint8 \(3, 27, 28, 1\)"),
        (lambda arrays: {**arrays, "x_test": arrays["x_test"] / 255}, "float64"),
        (lambda arrays: {**arrays, "x_train": arrays["x_train"][:0]}, r"\(0, 28, 28, 1\)"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(change, words, pictures, known, tmp_path):
    path = written(tmp_path / "mnist.npz", change(pictures))
    known("MNIST", path)
    with pytest.raises(ValueError, match=f"does not hold the images of MNIST.*{words}.*It takes arrays x_train"):
        images.mnist(path)


def test_a_damaged_file_is_refused(pictures, known, tmp_path):
    path = written(tmp_path / "mnist.npz", pictures)
    path.write_bytes(path.read_bytes()[:500])
    known("MNIST", path)
    with pytest.raises(ValueError, match="does not hold the images of MNIST"):
        images.mnist(path)


def test_jpegs_are_decoded_one_by_one(rng, known, tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    smooth = np.clip(np.add.outer(np.arange(32), np.arange(32))[..., None] * 3 + np.array([0, 30, 60]), 0, 255)
    pictures = [np.roll(smooth, shift, axis=2).astype(np.uint8) for shift in range(3)]
    arrays = {}
    for part, some in (("train", pictures), ("test", pictures[:1])):
        files = [io.BytesIO() for _ in some]
        for file, picture in zip(files, some, strict=True):
            image.fromarray(picture).save(file, "JPEG", quality=95, subsampling=0)
        arrays[f"jpeg_{part}"] = np.frombuffer(b"".join(file.getvalue() for file in files), np.uint8)
        arrays[f"offset_{part}"] = np.cumsum([0, *(len(file.getvalue()) for file in files)])
    path = written(tmp_path / "cifar10_jpeg.npz", arrays)
    known("CIFAR10", path)
    found = images.cifar10(tmp_path)
    assert found.train.shape == (3, 32, 32, 3) and found.test.shape == (1, 32, 32, 3)
    for got, picture in zip(found.train, pictures, strict=True):
        assert np.abs(got.astype(int) - picture).mean() < 3
    assert np.abs(found.train[0].astype(int) - pictures[1]).mean() > 10
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'npax\[tasks\]'"):
        images.cifar10(path)
