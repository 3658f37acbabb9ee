"""What a predicted round demands of a trace, in the words that SQL knows."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from roundline.bandwidth.architecture import WeightMatrix
from roundline.bandwidth.prediction import RoundFloor
from roundline.warehouse.parameters import MatrixDemand, Parameters, TermDemand


def demands_of(floor: RoundFloor) -> Parameters:
    """The prediction as warehouse parameters: terms, weight matrices and the GPU's peak."""
    return Parameters(
        matrices=_matrices(floor),
        terms=tuple(TermDemand(t.term, t.bytes, t.floor_ns, t.expected_ns) for t in floor.terms),
        peak_bytes_per_s=int(floor.gpu.hbm_gbps * 10**9),
    )


def _matrices(floor: RoundFloor) -> tuple[MatrixDemand, ...]:
    """One demand per module and name; layers of unequal shape are averaged."""
    groups: dict[tuple[str, str], list[WeightMatrix]] = defaultdict(list)
    for matrix in floor.matrices:
        groups[matrix.module, matrix.name].append(matrix)
    return tuple(
        MatrixDemand(module, name, reads, round(_bytes(matrices, _tokens(floor, module)) / reads))
        for (module, name), matrices in groups.items()
        if (reads := sum(matrix.count for matrix in matrices))
    )


def _bytes(matrices: list[WeightMatrix], tokens: int) -> Fraction:
    return sum((m.count * m.bytes * m.experts_read(tokens) for m in matrices), start=Fraction(0))


def _tokens(floor: RoundFloor, module: str) -> int:
    rows = floor.workload.verify_tokens if module == "target" else 1
    return floor.workload.batch * rows
