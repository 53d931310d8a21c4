"""Compiled programs that outlive the process."""

import os
import sys
from pathlib import Path


def keep_compiled_programs() -> None:
    """Keeps the programs that JAX compiles from now on in the user's cache folder, `npax/jax` there, for later runs.

    Compiling is most of a first prediction: some seconds of exact ones, ten of a picture. The `npax` command does it by
    itself; in a script call this before the first prediction. The folder only grows; it may be deleted at any time.
    Where JAX_COMPILATION_CACHE_DIR names a folder it is that one, and where nothing can be written there is none.
    """
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        try:
            folder = _user_cache() / "npax" / "jax"
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):  # a user without a home, in a container
            return
        if not os.access(folder, os.W_OK):
            return
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "0")
    if "jax" in sys.modules:
        _tell_jax()


def _tell_jax():
    """What a JAX that is there already would have read in the environment."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    seconds, size = "jax_persistent_cache_min_compile_time_secs", "jax_persistent_cache_min_entry_size_bytes"
    jax.config.update(seconds, float(os.environ[seconds.upper()]))
    jax.config.update(size, int(os.environ[size.upper()]))
    compilation_cache.reset_cache()  # or one that has compiled without a folder goes on without


def _user_cache():
    """Where this system keeps a user's caches."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
