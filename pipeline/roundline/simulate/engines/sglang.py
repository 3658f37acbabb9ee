"""SGLang with MTP, spec v2: draft graph, eager tree build and preparation, verify graph, eager
sampling and state commit, then the extending draft pass as a graph or eager."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from roundline.simulate.engines.setup import PROMPT_ROWS, Setup, piecewise
from roundline.simulate.names import sglang as names
from roundline.simulate.names import torch_names as t
from roundline.simulate.ops import (
    Begin,
    Op,
    Replay,
    Step,
    Sync,
    Work,
    copy,
    eagerly,
    in_phase,
)
from roundline.simulate.timeline import Anchor


@dataclass(frozen=True)
class SglangMtp:
    """Rounds of SGLang's EAGLE worker with an MTP draft layer."""

    setup: Setup

    def round(self, anchor: Anchor, number: int) -> list[Step]:
        """Draft, verify, sample, commit, extend; then what prepares the next draft.

        A single draft pass is the extending one: such a round starts with its verification.
        """
        accept = eagerly(self._sampling) + eagerly(self._commit) + self._bookkeeping()
        after = accept + self._extend(number) + self._draft_preparation()
        if self.setup.draft_steps == 1:
            return [Begin(anchor), *self._verify(), *after, *self._tree_build()]
        return [Begin(anchor), *self._draft(), *self._tree_build(), *self._verify(), *after]

    def prefill(self) -> list[Step]:
        """The target over a prompt, its sampling, and the draft layer over the same prompt."""
        forward = self.setup.forward(PROMPT_ROWS, "prefill")
        target = [*forward.target(), *forward.small((t.ARGMAX,))]
        draft = [*forward.mtp(), *forward.small((names.SOFTMAX, t.TOP_K))]
        label = f"step[EXTEND bs=1 toks={PROMPT_ROWS}]"
        steps = self.setup.within(label, self._prompt(in_phase(target, "prefill")))
        steps += self.setup.within("draft_extend", eagerly(in_phase(draft, "prefill")))
        inputs: list[Step] = [
            Sync(),
            Work(self.setup.host_ns(900_000)),
            *eagerly([copy("HtoD", 8 * PROMPT_ROWS)]),
        ]
        return [*inputs, *steps, *self._draft_preparation()]

    def _prompt(self, ops: tuple[Op, ...]) -> list[Step]:
        """Eager, or dozens of small graphs split at mixers and all-reduces."""
        if not self.setup.piecewise:
            return eagerly(ops)
        dialect = self.setup.dialect
        mixers = (*dialect.attention("prefill"), *dialect.gdn_prologue("prefill"))
        seams = (*mixers, *dialect.recurrent("prefill"), dialect.all_reduce)
        return piecewise("prompt", list(ops), seams)

    def _graph(self, name: str) -> str:
        """Graphs are captured per batch size and number of draft steps."""
        return f"{name}/{self.setup.batch}/{self.setup.draft_steps}"

    def _draft(self) -> list[Step]:
        return self.setup.within("draft", [Replay(self._graph("draft"), self._draft_graph)])

    @cached_property
    def _draft_graph(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.batch, "decode")
        ops: list[Op] = []
        for step in range(1, self.setup.draft_steps):
            one = [*forward.mtp(), *forward.small((names.SOFTMAX, t.TOP_K))]
            if step == self.setup.draft_steps - 1:
                one += forward.small((t.CONCATENATE, t.CONCATENATE, t.TOP_K, t.TAKE))
            ops += in_phase(one, "draft", step)
        return tuple(ops)

    def _tree_build(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        build = forward.small((t.CONCATENATE, t.FILL_LONG, names.BUILD_TREE))
        prepare = forward.small((names.ASSIGN_EXTEND_LOCS, t.ADD_LONG, names.KV_INDICES))
        plan: list[Step] = [
            *eagerly([copy("DtoH", 64 * self.setup.batch)]),
            Sync(),
            Work(self.setup.host_ns(1_150_000), "BatchPrefillWithPagedKVCacheWrapper.plan"),
            *eagerly([copy("HtoD", 262_144), copy("HtoD", 4_096)]),
            *eagerly(forward.small((t.COPY_BF16,))),
        ]
        return eagerly(build) + eagerly(prepare) + plan

    def _verify(self) -> list[Step]:
        label = f"step[TARGET_VERIFY bs={self.setup.batch}]"
        return self.setup.within(label, [Replay(self._graph("verify"), self._verify_graph)])

    @cached_property
    def _verify_graph(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        return in_phase(forward.target(), "verify")

    @cached_property
    def _sampling(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        if self.setup.greedy:
            return in_phase(forward.small((t.ARGMAX, names.VERIFY_GREEDY)), "sample")
        ops = forward.small((names.SOFTMAX, names.TOP_P_RENORM, names.VERIFY_SAMPLED))
        if self.setup.tp > 1:
            ops += [forward.collective(t.NCCL_BROADCAST, 64) for _ in range(3)]
        return in_phase(ops, "sample")

    @cached_property
    def _commit(self) -> tuple[Op, ...]:
        gdn = self.setup.model.gdn
        if gdn is None:
            return ()
        layers = self.setup.model.layers.count("gdn")
        state_bytes = 2 * layers * gdn.state_bytes(self.setup.tp) * self.setup.batch
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        states = forward.moving((names.STATE_SCATTER,), state_bytes)
        windows = forward.moving((names.STATE_SCATTER,), state_bytes // 50)
        return in_phase([*states, *windows], "commit")

    def _bookkeeping(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        ops = forward.small((t.TAKE, names.FILL_BONUS, t.ADD_LONG))
        ops += [copy("DtoH", 32 * self.setup.batch)]
        return [*eagerly(ops), Sync(), Work(self.setup.host_ns(260_000), "aten::to")]

    def _extend(self, number: int) -> list[Step]:
        if self.setup.extend == "graph":
            replay = Replay(self._graph("extend"), self._extend_pass)
            return self.setup.within("draft_extend", [*self._plan(180_000), replay])
        return self.setup.within(
            "draft_extend", [*self._plan(720_000), *eagerly(self._extend_pass)]
        )

    def _plan(self, duration_ns: int) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        return [
            Work(self.setup.host_ns(duration_ns), "BatchPrefillWithPagedKVCacheWrapper.plan"),
            *eagerly([copy("HtoD", 65_536), *forward.small((names.KV_INDICES,))]),
        ]

    @cached_property
    def _extend_pass(self) -> tuple[Op, ...]:
        forward = self.setup.forward(self.setup.verify_rows(), "verify")
        ops = [*forward.mtp(), *forward.small((names.SOFTMAX, t.TOP_K))]
        return in_phase(ops, "draft_extend", self.setup.draft_steps)

    def _draft_preparation(self) -> list[Step]:
        forward = self.setup.forward(self.setup.batch, "decode")
        ops = forward.small((names.ASSIGN_DRAFT_LOCS, names.DRAFT_KV_INDICES))
        return [
            *eagerly([*ops, copy("DtoH", 16 * self.setup.batch)]),
            Sync(),
            Work(self.setup.host_ns(480_000), "aten::to"),
            *eagerly([copy("DtoD", 4_096), *forward.small((t.COPY_BF16,))]),
        ]
