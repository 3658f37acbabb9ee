"""A store appears whole or not at all, whenever its maker is killed."""

from __future__ import annotations

import fcntl
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roundline.errors import StoreError
from roundline.store.manifest import MANIFEST


@contextmanager
def new_store(target: Path, *, force: bool) -> Iterator[Path]:
    """A folder that becomes `target` when the block ends well, and vanishes otherwise.

    Raises:
        StoreError: `target` exists and `force` is off, or is no store.
    """
    if target.exists():
        _refuse_existing(target, force=force)
    target.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{target.name}.partial-"
    _sweep(target.parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        with _claimed(folder):
            yield folder
            _publish(folder, target)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _sweep(parent: Path, prefix: str) -> None:
    """Remove what killed ingests left behind; a folder that lives is claimed by its maker."""
    for left in parent.glob(f"{glob.escape(prefix)}*"):
        try:
            with _claimed(left):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder; it ends with the process, however that ends.

    Raises:
        OSError: another process holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _refuse_existing(target: Path, *, force: bool) -> None:
    if not force:
        raise StoreError(f"{target} exists: choose another name or add --force")
    is_store = (target / MANIFEST).is_file()
    is_empty = target.is_dir() and not any(target.iterdir())
    if not is_store and not is_empty:
        raise StoreError(f"{target} exists and is no store: --force only replaces stores")


def _publish(folder: Path, target: Path) -> None:
    folder.chmod(0o755)
    if not target.exists():
        folder.rename(target)
        return
    old = folder.with_name(f"{folder.name}.old")
    target.rename(old)
    folder.rename(target)
    shutil.rmtree(old, ignore_errors=True)
