"""A model as the list of what its layers read: weight matrices, caches and recurrent states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roundline.bandwidth.feed_forward import FeedForward
from roundline.bandwidth.mixers import Mixer
from roundline.bandwidth.quantization import FormatOf, Tensor, WeightFormat
from roundline.bandwidth.shapes import Linear, Parallelism, Sharding, linear, split
from roundline.bandwidth.weight_matrix import WeightMatrix, merged, weight_matrices

__all__ = [
    "Architecture", "Draft", "Layer", "Parallelism", "Parameters", "WeightMatrix", "load_model",
]  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One decoder layer: its mixers (two run side by side in Falcon-H1), its feed-forward part."""

    mixers: tuple[Mixer, ...]
    feed_forward: FeedForward | None
    norms: int
    norm_parameters: int

    @property
    def kind(self) -> str:
        """ "attention", "gdn", "mamba", "conv", "attention+mamba", or "mlp" without a mixer."""
        return "+".join(mixer.kind for mixer in self.mixers) or "mlp"

    @property
    def all_reduces(self) -> int:
        """Sums over GPUs in one pass at tp > 1."""
        return sum(mixer.all_reduces for mixer in self.mixers) + (self.feed_forward is not None)

    def linears(self, parallel: Parallelism) -> tuple[Linear, ...]:
        """Weight matrices on one GPU, in order of execution."""
        mixing = [m for mixer in self.mixers for m in mixer.linears(parallel.attention_tp)]
        return (*mixing, *(self.feed_forward.linears(parallel) if self.feed_forward else ()))

    def vectors(self, parallel: Parallelism) -> int:
        """Parameters on one GPU outside the matrices."""
        feeding = self.feed_forward.vectors(parallel) if self.feed_forward else 0
        return self._mixer_vectors(parallel) + feeding + self.norm_parameters

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """Those that one pass over `tokens` tokens reads."""
        feeding = self.feed_forward.vectors_read(parallel, tokens) if self.feed_forward else 0
        return self._mixer_vectors(parallel) + feeding + self.norm_parameters

    def _mixer_vectors(self, parallel: Parallelism) -> int:
        return sum(mixer.vectors(parallel.attention_tp) for mixer in self.mixers)


@dataclass(frozen=True)
class Parameters:
    """Parameter counts of a checkpoint; `vision` is None where the tower's shape is unknown."""

    text: int
    mtp: int
    vision: int | None

    @property
    def total(self) -> int:
        """All that is known."""
        return self.text + self.mtp + (self.vision or 0)


@dataclass(frozen=True)
class Draft:
    """What one draft pass runs: a multi-token-prediction layer, an EAGLE head or a whole model.

    `fuse_inputs` hidden vectors are concatenated into the `fc` matrix (0: there is none). A
    checkpoint may hold `depth` such modules, of which a pass runs one. `own_vocab` is the size of
    the draft's own lm_head; None shares the target's. `prefix` and `fuse_module` are module names
    in the checkpoint.
    """

    name: str
    hidden: int
    layers: tuple[Layer, ...]
    norm_parameters: int
    format_of: FormatOf
    weight_format: WeightFormat
    fuse_inputs: int = 0
    prefix: str = "model.layers.0."
    fuse_module: str = "fc"
    depth: int = 1
    own_vocab: int | None = None

    def fuse(self, parallel: Parallelism, replicated: bool) -> tuple[Linear, ...]:
        """The `fc` matrix, whole on every GPU or sliced by columns."""
        if not self.fuse_inputs:
            return ()
        columns = self.hidden if replicated else split(self.hidden, parallel.tp, "fc columns")
        sharding: Sharding = "replicated" if replicated else "column"
        fan_in = self.fuse_inputs * self.hidden
        return (linear("fc", fan_in, self.fuse_module, columns, sharding),)

    def parameters(self) -> int:
        """Parameters of all modules without embedding and head."""
        alone = Parallelism()
        matrices = [m for layer in self.layers for m in layer.linears(alone)]
        weights = sum(m.weights for m in (*matrices, *self.fuse(alone, replicated=True)))
        return self.depth * (weights + self.vectors(alone))

    def vectors(self, parallel: Parallelism) -> int:
        """Parameters of one module on one GPU outside the matrices."""
        return sum(layer.vectors(parallel) for layer in self.layers) + self.norm_parameters

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """Those that one pass over `tokens` tokens reads."""
        layers = sum(layer.vectors_read(parallel, tokens) for layer in self.layers)
        return layers + self.norm_parameters


@dataclass(frozen=True)
class Architecture:
    """A decoder: layers, embedding and head, and how its weights are stored.

    `mtp` is the checkpoint's own draft module, `draft` what drafts: the same by default.
    `state_format` is the dtype of the recurrent state where the config names one.
    `notes` are sentences on what was assumed in reading the config.
    """

    name: str
    hidden: int
    vocab: int
    tied: bool
    layers: tuple[Layer, ...]
    norm_parameters: int
    weight_format: WeightFormat
    format_of: FormatOf
    mtp: Draft | None = None
    draft: Draft | None = None
    vision_parameters: int | None = None
    has_vision: bool = False
    state_format: WeightFormat | None = None
    source: str = ""
    notes: tuple[str, ...] = ()

    @property
    def layer_types(self) -> tuple[str, ...]:
        """The kind of every layer, first to last."""
        return tuple(layer.kind for layer in self.layers)

    @property
    def parameters(self) -> Parameters:
        """Counts to compare with the publisher's; a tied head counts once."""
        alone = Parallelism()
        matrices = sum(m.weights for layer in self.layers for m in layer.linears(alone))
        tables = self.vocab * self.hidden * (1 if self.tied else 2)
        text = matrices + self.vectors(alone) + tables
        return Parameters(text, self.mtp.parameters() if self.mtp else 0, self.vision_parameters)

    @property
    def checkpoint_bytes(self) -> int:
        """Size of all tensors as stored: compare with `total_size` of the checkpoint's index."""
        alone, depth = Parallelism(), self.mtp.depth if self.mtp else 0
        matrices = replace(self, draft=self.mtp).weight_matrices(alone, tie_head=self.tied)
        target = sum(m.resident_bytes for m in matrices if m.module == "target")
        mtp = sum(m.resident_bytes for m in matrices if m.module == "draft" and m.name != "lm_head")
        others = self.vectors(alone) + (self.vision_parameters or 0)
        others += depth * self.mtp.vectors(alone) if self.mtp else 0
        return target + depth * mtp + self.weight_format.bytes_of(others) + self.embedding_bytes()

    def embedding_bytes(self, gpus: int = 1) -> int:
        """The embedding's share of one GPU where `gpus` divide the vocabulary."""
        matrix = "lm_head" if self.tied else "embedding"
        stored = self.format_of(Tensor("model.embed_tokens", "", matrix, self.hidden))
        return stored.bytes_of(-(-self.vocab // gpus) * self.hidden)

    def vectors(self, parallel: Parallelism) -> int:
        """Parameters on one GPU outside matrices and embedding: norms, biases, convolutions."""
        return sum(layer.vectors(parallel) for layer in self.layers) + self.norm_parameters

    def vectors_read(self, parallel: Parallelism, tokens: int) -> int:
        """Those that one pass over `tokens` tokens reads."""
        layers = sum(layer.vectors_read(parallel, tokens) for layer in self.layers)
        return layers + self.norm_parameters

    def weight_matrices(
        self,
        parallel: Parallelism | None = None,
        *,
        fc_replicated: bool = True,
        head_replicated: bool = False,
        tie_head: bool = False,
    ) -> tuple[WeightMatrix, ...]:
        """Every matrix of the target pass, then of one draft pass, as one GPU holds it.

        Args:
            parallel: degrees; one GPU by default.
            fc_replicated: the draft's `fc` is whole on every GPU (SGLang) or sliced (vLLM).
            head_replicated: lm_head is whole on every GPU (gpt-fast).
            tie_head: leave the target's lm_head out, as a tied checkpoint stores it.

        Raises:
            UsageError: a degree does not divide a dimension.
        """
        parallel = parallel or Parallelism()
        head_gpus = 1 if head_replicated else parallel.tp
        target = [*self._target_linears(parallel)]
        if not tie_head:
            target.append((self._head(self.vocab, self.hidden, head_gpus), None, ""))
        matrices = [*weight_matrices(target, "target", self.format_of, len(self.layers))]
        if self.draft:
            matrices += self._draft_matrices(self.draft, parallel, fc_replicated, head_gpus)
        return tuple(merged(matrices))

    def with_formats(self, format_of: FormatOf, full: WeightFormat) -> Architecture:
        """The same shapes stored differently, with the draft module of the same checkpoint."""
        mtp = self.mtp and replace(self.mtp, format_of=format_of, weight_format=full)
        draft = mtp if self.draft is self.mtp else self.draft
        return replace(self, format_of=format_of, weight_format=full, mtp=mtp, draft=draft)

    def _target_linears(self, parallel: Parallelism) -> Iterator[tuple[Linear, int | None, str]]:
        for index, layer in enumerate(self.layers):
            for matrix in layer.linears(parallel):
                yield matrix, index, f"model.layers.{index}."

    def _draft_matrices(
        self, draft: Draft, parallel: Parallelism, fc_replicated: bool, head_gpus: int
    ) -> Iterable[WeightMatrix]:
        linears: list[tuple[Linear, int | None, str]] = [
            (matrix, None, "") for matrix in draft.fuse(parallel, fc_replicated)
        ]
        for layer in draft.layers:
            linears += [(matrix, None, draft.prefix) for matrix in layer.linears(parallel)]
        yield from weight_matrices(linears, "draft", draft.format_of, 0)
        head = self._head(draft.own_vocab or self.vocab, draft.hidden, head_gpus)
        head_format = self.format_of if draft.own_vocab is None else draft.format_of
        yield from weight_matrices([(head, None, "")], "draft", head_format, 0, is_draft=False)

    @staticmethod
    def _head(vocab: int, hidden: int, gpus: int) -> Linear:
        return linear("lm_head", hidden, "lm_head", -(-vocab // gpus), "vocab")


def load_model(name_or_path: str | Path) -> Architecture:
    """A model of the catalogue, or of a Hugging Face `config.json` (or the folder that holds it).

    Raises:
        UnknownNameError: neither a catalogue name nor an existing path.
        UsageError: the config lacks a shape, contradicts itself or is of an unknown kind.
    """
    from roundline.bandwidth.catalogue import read_model

    return read_model(str(name_or_path))
