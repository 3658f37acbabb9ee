"""Weight matrices as one GPU stores and reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from roundline.bandwidth.quantization import FormatOf, Tensor
from roundline.bandwidth.shapes import Linear, Routing, Sharding

Module = Literal["target", "draft"]


@dataclass(frozen=True)
class WeightMatrix:
    """A weight matrix on one GPU; one per (module, name, shape, format).

    `count` is how often a pass multiplies by it (once per layer that has it); `bytes` is the size
    of one such matrix, of one expert for routed ones.
    """

    name: str
    module: Module
    k: int
    n: int
    sharding: Sharding
    count: int
    bytes: int
    format: str
    unpacks: bool
    routing: Routing | None = None

    @property
    def resident_bytes(self) -> int:
        """Bytes on one GPU, read or not."""
        return self.count * self.bytes * (self.routing.resident if self.routing else 1)

    def read_bytes(self, tokens: int) -> int:
        """Bytes that one pass over `tokens` tokens reads on one GPU."""
        return round(self.count * self.bytes * self.experts_read(tokens))

    def experts_read(self, tokens: int) -> Fraction:
        """Copies that one multiplication reads: the experts touched, else 1."""
        return self.routing.distinct(tokens) if self.routing else Fraction(1)


def weight_matrices(
    linears: Iterable[tuple[Linear, int | None, str]],
    module: Module,
    format_of: FormatOf,
    layers: int,
    is_draft: bool | None = None,
) -> Iterator[WeightMatrix]:
    """One matrix per linear, stored as `format_of` says.

    Args:
        linears: each with its layer (None outside the decoder) and the prefix of its modules.
        module: who multiplies by it.
        format_of: format of each of its tensors.
        layers: decoder layers in all.
        is_draft: whether the tensors are a draft's own; the shared lm_head of a draft is not.
    """
    in_draft = module == "draft" if is_draft is None else is_draft
    for matrix, layer, prefix in linears:
        formats = [
            format_of(
                Tensor(
                    prefix + part.module, prefix + matrix.fused, matrix.name, matrix.k, layer,
                    layers, in_draft,
                )
            )
            for part in matrix.parts
        ]  # fmt: skip
        stored = zip(matrix.parts, formats, strict=True)
        yield WeightMatrix(
            name=matrix.name, module=module, k=matrix.k, n=matrix.n, sharding=matrix.sharding,
            count=1, bytes=sum(f.bytes_of(matrix.k * part.columns) for part, f in stored),
            format="+".join(dict.fromkeys(f.name for f in formats)),
            unpacks=any(f.unpacks for f in formats), routing=matrix.routing,
        )  # fmt: skip


def merged(matrices: Iterable[WeightMatrix]) -> Iterator[WeightMatrix]:
    """Equal matrices as one with their count, in order of first appearance."""
    counts: dict[WeightMatrix, int] = {}
    for matrix in matrices:
        counts[matrix] = counts.get(matrix, 0) + 1
    for matrix, count in counts.items():
        yield replace(matrix, count=count)
