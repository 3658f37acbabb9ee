"""SGLang with other drafters: n-grams, a draft model of its own, a block drafter, adaptive steps;
and the older worker whose extending pass covers the accepted tokens only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from roundline.simulate.engines.setup import Setup
from roundline.simulate.engines.sglang import SglangMtp
from roundline.simulate.names import sglang as names
from roundline.simulate.names import torch_names as t
from roundline.simulate.ops import Begin, Op, Replay, Step, Work, copy, eagerly, in_phase
from roundline.simulate.timeline import Anchor


@dataclass(frozen=True)
class SglangNgram(SglangMtp):
    """Drafts looked up on the host: no draft kernels, so a round starts with its verification."""

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Verify, sample, commit; then the next tree from the host's table."""
        accept = eagerly(self._sampling) + eagerly(self._commit) + self._bookkeeping()
        return [Begin(anchor), *self._verify(), *accept, *self._lookup(), *self._tree_build()]

    def _lookup(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return [
            Work(self.setup.host_ns(120_000)),
            *eagerly([copy("HtoD", 512), *forward.small((names.RECONSTRUCT_TREE,))]),
        ]


@dataclass(frozen=True)
class SglangStandalone(SglangMtp):
    """A draft model of its own in the draft graph, one pass for each step but the last."""

    @cached_property
    def _draft_graph(self) -> tuple[Op, ...]:
        ops: list[Op] = []
        for step in range(1, self.setup.draft_steps):
            forward = self.setup.drafter(self.setup.batch, "decode")
            one = [*forward.draft_pass(), *forward.small((names.SOFTMAX, t.TOP_K))]
            ops += in_phase(one, "draft", step)
        return tuple(ops)

    @cached_property
    def _extend_pass(self) -> tuple[Op, ...]:
        forward = self.setup.drafter(self.setup.verify_rows(), "verify")
        ops = [*forward.draft_pass(), *forward.small((names.SOFTMAX, t.TOP_K))]
        return in_phase(ops, "draft_extend", self.setup.draft_steps)


@dataclass(frozen=True)
class SglangBlock(SglangMtp):
    """A block drafter: one pass over the whole block drafts all tokens at once."""

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Block draft, verify, sample, commit."""
        draft = self.setup.within("draft", [Replay("block", self._draft_graph)])
        accept = eagerly(self._sampling) + eagerly(self._commit) + self._bookkeeping()
        steps: list[Step] = [Begin(anchor), *draft, *self._tree_build(), *self._verify()]
        return steps + accept + self._draft_preparation()

    @cached_property
    def _draft_graph(self) -> tuple[Op, ...]:
        forward = self.setup.drafter(self.setup.verify_rows(), "verify")
        one = [*forward.draft_pass(), *forward.small((t.ARGMAX,))]
        return in_phase(one, "draft", 1)


@dataclass(frozen=True)
class SglangAdaptive:
    """Draft steps that change while serving: so do graphs and round lengths."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Three rounds with the steps asked for, then three with one more, and so on."""
        return self._programs[number // 3 % 2].round(anchor, number)

    def prefill(self) -> list[Step]:
        """As with fixed steps."""
        return self._programs[0].prefill()

    @cached_property
    def _programs(self) -> tuple[SglangMtp, SglangMtp]:
        more = replace(self.setup, draft_steps=self.setup.draft_steps + 1)
        return SglangMtp(self.setup), SglangMtp(more)


@dataclass(frozen=True)
class SglangV1(SglangMtp):
    """The worker before spec v2: its extending pass runs over the accepted tokens, eagerly."""

    def _extend(self, number: int) -> list[Step]:
        accepted = (3, 1, 4, 2)[number % 4]
        rows = min(accepted, self.setup.draft_steps + 1) * self.setup.batch
        forward = self.setup.forward(rows, "verify" if rows > self.setup.batch else "decode")
        ops = [*forward.mtp(), *forward.small((names.SOFTMAX, t.TOP_K))]
        extend = eagerly(in_phase(ops, "draft_extend", self.setup.draft_steps))
        return self.setup.within("draft_extend", [*self._plan(640_000), *extend])
