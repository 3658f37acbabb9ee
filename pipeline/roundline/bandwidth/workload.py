"""One steady decode round as a user describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from roundline.bandwidth.shapes import Parallelism
from roundline.errors import UsageError

Drafter = Literal["model", "ngram"]


@dataclass(frozen=True)
class Workload:
    """One steady decode round.

    Attributes:
        batch: running requests.
        context: tokens in the cache of each request.
        draft_steps: K, draft passes a round; 0 is plain decode.
        num_draft_tokens: tokens that one verification checks; K + 1 by default (a chain).
        parallel: GPUs of one replica.
        drafter: a draft model, or n-grams that cost no pass.

    Raises:
        UsageError: a number makes no sense.
    """

    batch: int = 1
    context: int = 0
    draft_steps: int = 0
    num_draft_tokens: int | None = None
    parallel: Parallelism = field(default_factory=Parallelism)
    drafter: Drafter = "model"

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"--batch {self.batch}: a round has at least one request")
        if self.context < 0 or self.draft_steps < 0:
            raise UsageError("--context and --draft-steps cannot be negative")
        if self.num_draft_tokens is not None and not self.draft_steps:
            raise UsageError("--num-draft-tokens without --draft-steps: nothing is drafted")
        if self.num_draft_tokens is not None and self.num_draft_tokens <= self.draft_steps:
            raise UsageError(
                f"--num-draft-tokens {self.num_draft_tokens}: a verification of "
                f"{self.draft_steps} draft steps checks at least {self.draft_steps + 1} tokens"
            )

    @property
    def verify_tokens(self) -> int:
        """M: tokens of one request that the target pass computes."""
        return self.num_draft_tokens or self.draft_steps + 1

    @property
    def verify_rows(self) -> int:
        """Tokens of all requests that the target pass computes."""
        return self.batch * self.verify_tokens

    @property
    def draft_passes(self) -> int:
        """Passes of a draft model in one round."""
        return self.draft_steps if self.drafter == "model" else 0

    @property
    def requests_per_gpu(self) -> int:
        """Requests whose caches and states one GPU reads (the fullest, with attention groups)."""
        return -(-self.batch // self.parallel.dp)
