"""Weights that come with the package."""

from difflib import get_close_matches
from os import PathLike
from pathlib import Path

_FOLDER = Path(__file__).parent


def pretrained() -> list[str]:
    """The names of the models that come with the package; `npax.load(name)` gives one."""
    return sorted(path.stem for path in _FOLDER.glob("*.safetensors"))


def find(name: str | Path) -> Path:
    """The file of a pretrained model's name, or the path itself. **Raises** `FileNotFoundError` with what there is."""
    if not isinstance(name, str | PathLike):
        raise TypeError(f"`path` must be the name of a pretrained model or the path of a file; got {name!r}.")
    path = Path(name).expanduser()
    shipped = _FOLDER / f"{name}.safetensors"
    if path.is_file() or (path.suffix != ".safetensors" and shipped.is_file()):
        return path if path.is_file() else shipped
    near = get_close_matches(str(name), pretrained(), 1)
    meant = f" Did you mean '{near[0]}'?" if near else ""
    raise FileNotFoundError(
        f"There is no file '{name}' and no pretrained model of that name; pretrained: {', '.join(pretrained())}.{meant}"
    )


def is_shipped(path: Path) -> bool:
    """Whether the file is of the package, so that it does not change."""
    return path.parent == _FOLDER
