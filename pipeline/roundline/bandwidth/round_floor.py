"""The floor of one decode round: what it must read, term by term, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from roundline.bandwidth.architecture import Architecture, Draft, Layer, WeightMatrix
from roundline.bandwidth.assumptions import sentences
from roundline.bandwidth.communication import LinkCosts, choose_costs
from roundline.bandwidth.efficiency import Efficiency, default_efficiency
from roundline.bandwidth.exchange import (
    ACTIVATION_BYTES,
    draft_messages,
    exchange_cost,
    target_messages,
)
from roundline.bandwidth.hardware import Gpu
from roundline.bandwidth.prediction import (
    DraftPass,
    GemmCount,
    Messages,
    Phase,
    RoundCounts,
    RoundFloor,
    Term,
)
from roundline.bandwidth.pricing import Cost, Pricing
from roundline.bandwidth.residency import Residency
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload
from roundline.errors import UsageError

__all__ = [
    "DraftPass", "GemmCount", "Messages", "RoundCounts", "RoundFloor", "Term", "Workload",
    "predict",
]  # fmt: skip


def predict(
    model: Architecture,
    gpu: Gpu,
    workload: Workload,
    switches: EngineSwitches,
    efficiency: Efficiency | None = None,
    links: LinkCosts | None = None,
) -> RoundFloor:
    """Predict one decode round on one of the workload's GPUs.

    Args:
        model: shapes and formats; `model.draft` is what drafts.
        gpu: peak bandwidth and memory.
        workload: batch, context, draft steps, parallelism.
        switches: what the engine decides.
        efficiency: fractions of peak and latencies; by kind of memory if None.
        links: costs of the collectives; nearest public measurement if None.

    Raises:
        UsageError: a degree does not divide a dimension, or there is nothing to draft with.
    """
    if workload.draft_passes and model.draft is None:
        raise UsageError(
            f"{model.name} has no draft layer for --draft-steps {workload.draft_steps}: give "
            "--draft-model, or --drafter ngram, or --draft-steps 0"
        )
    links = links or choose_costs(gpu, workload.parallel.tp, switches.collective_kernel)
    efficiency = efficiency or default_efficiency(gpu)
    return _Round(model, gpu, workload, switches, efficiency, links).floor()


@dataclass(frozen=True)
class _Round:
    model: Architecture
    gpu: Gpu
    workload: Workload
    switches: EngineSwitches
    efficiency: Efficiency
    links: LinkCosts | None

    def floor(self) -> RoundFloor:
        passes = self._draft_passes()
        draft = _sum(cost for _, parts in passes for cost in parts.values())
        return RoundFloor(
            model=self.model,
            gpu=self.gpu,
            workload=self.workload,
            switches=self.switches,
            efficiency=self.efficiency,
            links=self.links,
            terms=(*self._target_terms(), _term("draft", draft)),
            draft_passes=tuple(
                DraftPass(step, tokens, tuple(_term(n, c) for n, c in parts.items()))
                for step, (tokens, parts) in enumerate(passes, 1)
            ),
            matrices=self._matrices,
            counts=self._counts(),
            state_bytes=self._resident.state_bytes(self.model.layers),
            conv_state_bytes=self._resident.conv_state_bytes(self.model.layers),
            state_passes=self._state_passes,
            kv_bytes_per_token=self._resident.kv_bytes(self.model.layers, 1),
            resident_bytes=self._resident.weight_bytes(self._matrices),
            all_parameter_bytes=self._resident.target_bytes(self._matrices),
            assumptions=tuple(sentences(self.model, self.gpu, self.workload, self.switches,
                                        self.links, self._matrices, self._needed_bytes(),
                                        self._state_passes, self._pricing.ridge_tokens())),
        )  # fmt: skip

    @cached_property
    def _pricing(self) -> Pricing:
        return Pricing(self.gpu, self.efficiency)

    @cached_property
    def _resident(self) -> Residency:
        return Residency(self.model, self.workload, self.switches)

    @cached_property
    def _matrices(self) -> tuple[WeightMatrix, ...]:
        matrices = self.model.weight_matrices(
            self.workload.parallel,
            fc_replicated=self.switches.fc_replicated,
            head_replicated=self.switches.head_replicated,
        )
        return tuple(m for m in matrices if m.module == "target" or self.workload.draft_passes)

    @property
    def _state_passes(self) -> int:
        return self.switches.passes(self.workload.verify_tokens, self.workload.draft_steps)

    def _needed_bytes(self) -> int:
        layers, requests = self.model.layers, self.workload.requests_per_gpu
        caches = self._resident.kv_bytes(layers, self.workload.context) * requests
        states = self._resident.state_bytes(layers)
        return self._resident.weight_bytes(self._matrices) + caches + states

    def _target_terms(self) -> list[Term]:
        rows, layers = self.workload.verify_rows, self.model.layers
        target = [m for m in self._matrices if m.module == "target"]
        vectors = self.model.vectors_read(self.workload.parallel, rows)
        weights = _sum(self._pricing.weight(m, rows) for m in target)
        weights += self._pricing.vectors(self.model.weight_format.bytes_of(vectors))
        messages = target_messages(self.model, self.workload, self.switches)
        return [
            _term("weights", weights),
            _term("attention", self._attention(layers)),
            _term("gdn", self._states(layers, self._state_passes)),
            _term("collective", exchange_cost(messages, self.links, self._pricing)),
            _term("elementwise", self._elementwise(rows)),
        ]

    def _draft_tokens(self) -> list[int]:
        """Tokens of each draft pass; the extend pass runs over all that were verified."""
        tokens = [self.workload.batch] * self.workload.draft_passes
        if tokens and self.switches.draft_extend:
            tokens[-1] = self.workload.verify_rows
        return tokens

    def _draft_passes(self) -> list[tuple[int, dict[str, Cost]]]:
        draft = self.model.draft
        return [(n, self._draft_pass(draft, n)) for n in self._draft_tokens()] if draft else []

    def _draft_pass(self, draft: Draft, tokens: int) -> dict[str, Cost]:
        mine = [m for m in self._matrices if m.module == "draft"]
        vectors = draft.vectors_read(self.workload.parallel, tokens)
        body = _sum(self._pricing.weight(m, tokens) for m in mine if m.name != "lm_head")
        messages = draft_messages(draft, self.model.vocab, tokens, self.workload, self.switches)
        parts = {
            "weights": body + self._pricing.vectors(draft.weight_format.bytes_of(vectors)),
            "lm_head": _sum(self._pricing.weight(m, tokens) for m in mine if m.name == "lm_head"),
            "attention": self._attention(draft.layers),
            "collective": exchange_cost(messages, self.links, self._pricing),
        }
        states = self._states(draft.layers, passes=2)
        return parts | ({"gdn": states} if states.bytes else {})

    def _attention(self, layers: tuple[Layer, ...]) -> Cost:
        size = self._resident.kv_bytes(layers, self.workload.context)
        kernels = sum(mixer.kind == "attention" for layer in layers for mixer in layer.mixers)
        return self._pricing.stream(size * self.workload.requests_per_gpu, kernels)

    def _states(self, layers: tuple[Layer, ...], passes: int) -> Cost:
        # The convolution's inputs are read once and written once, whatever the state's passes.
        size = passes * self._resident.state_bytes(layers)
        size += 2 * self._resident.conv_state_bytes(layers)
        kernels = sum(mixer.kind != "attention" for layer in layers for mixer in layer.mixers)
        return self._pricing.stream(size, kernels)

    def _elementwise(self, rows: int) -> Cost:
        """Embedding rows, and the small kernels: norms, activations, rotations, gates."""
        # Beside its norms a layer has an activation and, for a mixer, a rotation and a gate.
        nodes = sum(
            x.norms + 2 * len(x.mixers) + (x.feed_forward is not None) for x in self.model.layers
        )
        return self._pricing.nodes(nodes + 2, rows * self.model.hidden * ACTIVATION_BYTES)

    def _counts(self) -> RoundCounts:
        messages = target_messages(self.model, self.workload, self.switches)
        if draft := self.model.draft:
            for tokens in self._draft_tokens():
                messages += draft_messages(
                    draft, self.model.vocab, tokens, self.workload, self.switches
                )
        return RoundCounts(
            lm_head_reads=1 + self.workload.draft_passes,
            broadcasts=self.switches.sampling_broadcasts * (self.workload.parallel.tp > 1),
            messages=tuple(messages),
            gemms=tuple(self._gemm_counts()),
        )

    def _gemm_counts(self) -> list[GemmCount]:
        counts: dict[tuple[str, Phase], int] = {}
        for matrix in self._matrices:
            in_target = matrix.module == "target"
            phase: Phase = "verify" if in_target else "draft"
            times = matrix.count * (1 if in_target else self.workload.draft_passes)
            counts[matrix.name, phase] = counts.get((matrix.name, phase), 0) + times
        return [GemmCount(name, phase, count) for (name, phase), count in counts.items()]


def _sum(costs: Iterable[Cost]) -> Cost:
    return sum(costs, start=Cost())


def _term(name: str, cost: Cost) -> Term:
    return Term(name, cost.bytes, round(cost.floor), round(cost.expected))
