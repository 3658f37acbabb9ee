"""NVTX ranges that name the phase of a round, for engines that emit none.

    from roundline.capture.annotate import phase

    with phase("draft"):
        draft_worker.draft(batch)

Attribution recognises these ranges before anything else. Without a profiler they cost next to
nothing; without NVTX on the machine they do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal, get_args

import nvtx

from roundline.errors import UsageError

Phase = Literal["draft", "verify", "sample", "commit", "draft_extend", "prefill"]
PHASES: Final[tuple[str, ...]] = get_args(Phase)


@contextmanager
def phase(name: Phase) -> Iterator[None]:
    """A range `roundline:<phase>` around whatever launches that phase's kernels.

    Raises:
        UsageError: no phase has that name.
    """
    if name not in PHASES:
        raise UsageError(f"no phase is called {name!r}: phases are {', '.join(PHASES)}")
    with nvtx.annotate(f"roundline:{name}"):
        yield
