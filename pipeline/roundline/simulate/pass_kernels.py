"""The kernels that passes are made of: weight reads, exchanges, movers of state, small ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from roundline.simulate.costs import KernelCosts
from roundline.simulate.names.dialect import Dialect, Mode, Names
from roundline.simulate.ops import KernelName, Op
from roundline.simulate.shapes import Matrix, ModelShape

ACTIVATION_BYTES: Final = 2


@dataclass(frozen=True, kw_only=True)
class PassKernels:
    """Kernels of passes of one model with a fixed number of rows.

    Attributes:
        rows: tokens of all sequences together (M of the GEMMs).
        batch: sequences.
        context: tokens in the KV cache of each sequence.
        mode: what the rows are: one new token each, drafts to verify, or a prompt.
        side_stream: run small or independent GEMMs of a layer beside the large ones.
        overlap_ns: programmatic dependent launch between neighbours.
        fc_sharded: the MTP projection is split over ranks and gathered, not replicated.
    """

    dialect: Dialect
    costs: KernelCosts
    model: ModelShape
    tp: int
    rows: int
    batch: int
    context: int
    mode: Mode
    side_stream: bool = False
    overlap_ns: int = 0
    fc_sharded: bool = False

    @property
    def state_passes(self) -> int:
        """Recurrent states that one layer moves per sequence: verification keeps every step."""
        return 1 + self.rows // self.batch if self.mode == "verify" else 2

    def small(self, names: Iterable[KernelName]) -> list[Op]:
        """Kernels whose cost is their launch, in order."""
        return [
            Op(
                name=name.name,
                category=name.category,
                api=name.api,
                duration_ns=self.costs.small_ns(name.category, self.rows),
                grid=(self.rows, 1, 1),
                overlap_ns=self.overlap_ns,
            )
            for name in names
        ]

    def moving(self, names: Names, size_bytes: int, base_ns: int = 0) -> list[Op]:
        """Kernels that share the moving of `size_bytes` of state or cache."""
        share = size_bytes // max(1, len(names))
        return [
            Op(
                name=name.name,
                category=name.category,
                api=name.api,
                duration_ns=base_ns + self.costs.stream_ns(name.category, share),
                grid=(self.batch, 8, 1),
                overlap_ns=self.overlap_ns,
            )
            for name in names
        ]

    def gemm(self, matrix: Matrix) -> list[Op]:
        """A read of a weight matrix by the GEMM library."""
        return self.weight_read(self.dialect.gemm(self.rows, matrix), matrix)

    def weight_read(self, names: Names, matrix: Matrix) -> list[Op]:
        """A read of a weight matrix: what quantises its input, the GEMM, what finishes it."""
        first, *finish = names
        read = Op(
            name=first.name,
            category=first.category,
            api=first.api,
            duration_ns=self.costs.gemm_ns(matrix),
            matrix=matrix.name,
            grid=(max(1, matrix.n // 64), max(1, self.rows // 64), 1),
            overlap_ns=self.overlap_ns,
        )
        finishing = [replace(op, matrix=matrix.name) for op in self.small(finish)]
        return [*self.small(self.dialect.before_gemm), read, *finishing]

    def all_reduce(self) -> list[Op]:
        """The sum of a layer's output over the ranks, if there are several."""
        if self.tp == 1:
            return []
        size_bytes = self.rows * self.model.hidden * ACTIVATION_BYTES
        return [self.collective(self.dialect.all_reduce, size_bytes)]

    def collective(self, name: KernelName, size_bytes: int) -> Op:
        """An exchange of `size_bytes` between the ranks."""
        return Op(
            name=name.name,
            category=name.category,
            api=name.api,
            duration_ns=self.costs.collective_ns(size_bytes),
            grid=(2, 1, 1),
            block=(512, 1, 1),
        )
