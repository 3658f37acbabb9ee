"""`reconcile --calibrate`: fit a capture, write the profile, show the fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roundline.cli._output import emit, talk

if TYPE_CHECKING:
    from roundline.reconcile.reconciliation import Reconciliation
    from roundline.store import Store


def write_profile(result: Reconciliation, store: Store, path: Path, *, force: bool) -> None:
    """Write the profile of a reconciled capture to `path`; its fits go to stderr."""
    from roundline.bandwidth.profile import dump_profile
    from roundline.reconcile.calibration import calibrate
    from roundline.reconcile.demands import demands_of
    from roundline.reconcile.exchanges import read_exchanges
    from roundline.report.calibration import comments, render_calibration
    from roundline.warehouse.build import open_warehouse

    with open_warehouse(store, demands_of(result.floor)) as warehouse:
        exchanges = read_exchanges(warehouse, result.slowest.rank)
    found = calibrate(result.ranks, result.floor, exchanges, store.manifest)
    emit(dump_profile(found.profile, comments(found)), path, force=force)
    talk(render_calibration(found))
    talk(f"wrote {path}")


def warn_of_own_profile(result: Reconciliation, path: Path | None) -> None:
    """Say it where the profile was fitted on the very capture that it is to explain."""
    from roundline.bandwidth.profile import read_profile

    if path is None:
        return
    fitted_on = {digest for _, digest in read_profile(path).origin.sources}
    own = [source.name for source in result.manifest.sources if source.sha256 in fitted_on]
    if own:
        talk(
            f"{path.name} was fitted on this capture ({', '.join(own)}), so agreement with it"
            " proves nothing: reconcile without --profile, or fit another capture"
        )
