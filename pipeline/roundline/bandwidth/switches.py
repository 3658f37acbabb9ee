"""What an engine decides and a config does not say; every switch has the engine's default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from roundline.bandwidth.communication import Kernel
from roundline.bandwidth.quantization import FORMATS, WeightFormat
from roundline.errors import UnknownNameError

StatePasses = Literal["verify_snapshots", "slots", "in_place"]

_BF16: Final = FORMATS["bf16"]
_FLOAT32: Final = FORMATS["fp32"]


@dataclass(frozen=True)
class EngineSwitches:
    """One engine's way of running a round.

    Attributes:
        engine: its name.
        fc_replicated: the draft's `fc` is whole on every GPU; else sliced, with a gather per pass.
        head_replicated: lm_head is whole on every GPU, so logits need no gather.
        embedding_sharded: the embedding is sliced by vocabulary and its rows are summed.
        state_rule: how a verification keeps the recurrent states of its M tokens.
        state_passes: times that a recurrent state is read or written a round; None to derive it.
        state_format: dtype of recurrent states; None for the config's, else `default_state`.
        default_state: the engine's dtype where the config names none; None for the model's.
        kv_format: dtype of the KV cache.
        draft_extend: one draft pass a round runs over all verified tokens.
        sampling_broadcasts: broadcasts a round at tp > 1 (SGLang: 3 unless sampling is greedy).
        collective_kernel: what sums over GPUs where peer access allows it.
    """

    engine: str
    fc_replicated: bool = True
    head_replicated: bool = False
    embedding_sharded: bool = True
    state_rule: StatePasses = "slots"
    state_passes: int | None = None
    state_format: WeightFormat | None = None
    default_state: WeightFormat | None = None
    kv_format: WeightFormat = _BF16
    draft_extend: bool = True
    sampling_broadcasts: int = 0
    collective_kernel: Kernel = "nccl"

    def passes(self, verify_tokens: int, draft_steps: int) -> int:
        """Reads plus writes of each recurrent state a round; 2 in plain decode.

        SGLang's verification reads one state and writes one per token, then the commit reads and
        writes one: M + 3. An engine with a state slot per token needs M + 1.
        """
        if self.state_passes is not None:
            return self.state_passes
        if not draft_steps or self.state_rule == "in_place":
            return 2
        return verify_tokens + (3 if self.state_rule == "verify_snapshots" else 1)


ENGINES: Final = {
    "sglang": EngineSwitches(
        "sglang", state_rule="verify_snapshots", default_state=_FLOAT32, collective_kernel="custom"
    ),
    "vllm": EngineSwitches("vllm", fc_replicated=False, collective_kernel="custom"),
    "trtllm": EngineSwitches("trtllm", collective_kernel="custom"),
    "llama.cpp": EngineSwitches(
        "llama.cpp", state_rule="in_place", default_state=_FLOAT32, draft_extend=False,
        kv_format=FORMATS["fp16"], embedding_sharded=False,
    ),
    "gpt-fast": EngineSwitches("gpt-fast", head_replicated=True, embedding_sharded=False),
}  # fmt: skip

_ALIASES: Final = {"llamacpp": "llama.cpp", "tensorrt-llm": "trtllm", "gptfast": "gpt-fast"}


def engine_switches(name: str) -> EngineSwitches:
    """The defaults of an engine.

    Raises:
        UnknownNameError: nobody knows it.
    """
    plain = name.lower().replace("_", "-")
    found = ENGINES.get(_ALIASES.get(plain, plain))
    if found is None:
        raise UnknownNameError("engine", name, ENGINES, f"known are {', '.join(ENGINES)}")
    return found
