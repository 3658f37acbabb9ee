"""What one GPU holds: weights, KV cache, recurrent and convolution states."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from roundline.bandwidth.architecture import Architecture, Layer, WeightMatrix
from roundline.bandwidth.exchange import ACTIVATION_BYTES
from roundline.bandwidth.quantization import WeightFormat
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload


@dataclass(frozen=True)
class Residency:
    """Bytes on one GPU of a workload, read or not."""

    model: Architecture
    workload: Workload
    switches: EngineSwitches

    def kv_bytes(self, layers: tuple[Layer, ...], context: int) -> int:
        """KV bytes of one request whose cache holds `context` tokens; windows keep fewer."""
        tp = self.workload.parallel.attention_tp
        elements = sum(
            mixer.kv_elements(tp) * min(context, mixer.window or context)
            for layer in layers
            for mixer in layer.mixers
        )
        return self.switches.kv_format.bytes_of(elements)

    def state_bytes(self, layers: tuple[Layer, ...]) -> int:
        """Recurrent states of all requests."""
        tp = self.workload.parallel.attention_tp
        elements = sum(mixer.state_elements(tp) for layer in layers for mixer in layer.mixers)
        return self._state_format.bytes_of(elements * self.workload.requests_per_gpu)

    def conv_state_bytes(self, layers: tuple[Layer, ...]) -> int:
        """Convolution inputs of all requests."""
        tp = self.workload.parallel.attention_tp
        elements = sum(mixer.conv_state_elements(tp) for layer in layers for mixer in layer.mixers)
        return ACTIVATION_BYTES * elements * self.workload.requests_per_gpu

    def target_bytes(self, matrices: Iterable[WeightMatrix]) -> int:
        """All parameters of the target, embedding included: what published figures often count."""
        held = sum(m.resident_bytes for m in matrices if m.module == "target")
        vectors = self.model.vectors(self.workload.parallel)
        return held + self.model.weight_format.bytes_of(vectors) + self._embedding_bytes()

    def weight_bytes(self, matrices: tuple[WeightMatrix, ...]) -> int:
        """All weights that must be in memory, the draft's included; a shared head counts once."""
        draft = self.model.draft
        owns_head = draft is not None and draft.own_vocab is not None
        held = sum(
            m.resident_bytes for m in matrices
            if m.module == "draft" and (m.name != "lm_head" or owns_head)
        )  # fmt: skip
        return held + self.target_bytes(matrices)

    @property
    def _state_format(self) -> WeightFormat:
        return (
            self.switches.state_format
            or self.model.state_format
            or self.switches.default_state
            or self.model.weight_format
        )

    def _embedding_bytes(self) -> int:
        if self.model.tied:
            return 0
        gpus = self.workload.parallel.tp if self.switches.embedding_sharded else 1
        return self.model.embedding_bytes(gpus)
