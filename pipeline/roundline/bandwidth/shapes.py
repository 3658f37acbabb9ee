"""Weight matrices by shape: what one GPU holds of each under tensor and expert parallelism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from roundline.errors import UsageError

Sharding = Literal["column", "row", "replicated", "vocab", "expert"]


@dataclass(frozen=True)
class Parallelism:
    """How one replica of the model is spread over `tp` GPUs.

    `ep` of them divide the experts whole instead of slicing each. `dp` groups run attention on
    their own requests with their own copy of its weights (SGLang's --enable-dp-attention), so
    attention is sliced tp/dp ways. Plain replicas are no parallelism here: divide the batch.

    Raises:
        UsageError: a degree is below 1, or `ep` or `dp` does not divide `tp`.
    """

    tp: int = 1
    ep: int = 1
    dp: int = 1

    def __post_init__(self) -> None:
        for name, degree in (("tp", self.tp), ("ep", self.ep), ("dp", self.dp)):
            if degree < 1:
                raise UsageError(f"--{name} {degree}: at least one GPU is needed")
            if self.tp % degree:
                raise UsageError(f"--{name} {degree} does not divide the {self.tp} GPUs of --tp")

    @property
    def attention_tp(self) -> int:
        """GPUs that share one attention layer."""
        return self.tp // self.dp

    @property
    def expert_tp(self) -> int:
        """GPUs that share one expert."""
        return self.tp // self.ep


@dataclass(frozen=True)
class Routing:
    """Experts of a layer: `per_token` of `experts` are read for each token.

    With expert parallelism `gpus` hold an equal part each.
    """

    experts: int
    per_token: int
    gpus: int = 1

    @property
    def resident(self) -> int:
        """Experts that one GPU holds."""
        return split(self.experts, self.gpus, "experts", "ep")

    def distinct(self, tokens: int) -> Fraction:
        """Mean number of distinct experts on one GPU that `tokens` tokens read.

        E(1 - (1 - k/E)^T) for independent, balanced routing. Real routers repeat themselves, so
        fewer are read; an unbalanced layer's busiest GPU reads more.
        """
        untouched = (1 - Fraction(self.per_token, self.experts)) ** tokens
        return self.experts * (1 - untouched) / self.gpus


@dataclass(frozen=True)
class Part:
    """One checkpoint tensor inside a fused matrix: its module and its output columns on a GPU."""

    module: str
    columns: int


@dataclass(frozen=True)
class Linear:
    """A weight matrix of one layer as one GPU holds it: `k` inputs, n outputs, no bias.

    `fused` is the module name that engines give to the matrix of several parts.
    """

    name: str
    k: int
    parts: tuple[Part, ...]
    sharding: Sharding
    fused: str
    routing: Routing | None = None

    @property
    def n(self) -> int:
        """Output columns on one GPU."""
        return sum(part.columns for part in self.parts)

    @property
    def weights(self) -> int:
        """Weights on one GPU; all of its experts for a routed matrix."""
        return self.k * self.n * (self.routing.resident if self.routing else 1)


def linear(name: str, k: int, module: str, columns: int, sharding: Sharding) -> Linear:
    """A matrix that is one tensor of the checkpoint."""
    return Linear(name, k, (Part(module, columns),), sharding, module)


def split(total: int, ways: int, what: str, option: str = "tp") -> int:
    """`total` divided evenly.

    Raises:
        UsageError: it does not divide.
    """
    if total % ways:
        raise UsageError(f"--{option} {ways} does not divide {total} {what}: choose a divisor")
    return total // ways


def split_or_copy(total: int, ways: int, what: str) -> int:
    """`total` divided over GPUs; where there are more GPUs than items, one copy each.

    Raises:
        UsageError: neither of the two numbers divides the other.
    """
    if ways <= total:
        return split(total, ways, what)
    if ways % total:
        raise UsageError(f"{total} {what} cannot be duplicated evenly over --tp {ways}")
    return 1
