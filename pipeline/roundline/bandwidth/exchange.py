"""Messages between the GPUs of one round: how many collectives, and of what size."""

from __future__ import annotations

from typing import Final

from roundline.bandwidth.architecture import Architecture, Draft
from roundline.bandwidth.communication import CollectiveCost, LinkCosts
from roundline.bandwidth.prediction import Messages, Phase
from roundline.bandwidth.pricing import Cost, Pricing
from roundline.bandwidth.switches import EngineSwitches
from roundline.bandwidth.workload import Workload

ACTIVATION_BYTES: Final = 2  # bf16 hidden vectors and logits


def target_messages(
    model: Architecture, workload: Workload, switches: EngineSwitches
) -> list[Messages]:
    """Sums after every mixer and feed-forward part, of the embedding's rows, and the logits."""
    if workload.parallel.tp == 1:
        return []
    row = workload.verify_rows * ACTIVATION_BYTES
    reduces = sum(layer.all_reduces for layer in model.layers)
    return _messages("verify", switches, reduces, row * model.hidden, row * model.vocab)


def draft_messages(
    draft: Draft, vocab: int, tokens: int, workload: Workload, switches: EngineSwitches
) -> list[Messages]:
    """The same for one draft pass over `tokens` tokens; a sliced `fc` gathers its output."""
    if workload.parallel.tp == 1:
        return []
    row = tokens * ACTIVATION_BYTES
    reduces = sum(layer.all_reduces for layer in draft.layers)
    logits = row * (draft.own_vocab or vocab)
    messages = _messages("draft", switches, reduces, row * draft.hidden, logits)
    if draft.fuse_inputs and not switches.fc_replicated:
        messages.append(Messages("all_gather", "draft", 1, row * draft.hidden))
    return messages


def _messages(
    phase: Phase, switches: EngineSwitches, layer_reduces: int, hidden_bytes: int, logit_bytes: int
) -> list[Messages]:
    reduces = layer_reduces + switches.embedding_sharded
    messages = [Messages("all_reduce", phase, reduces, hidden_bytes)]
    if not switches.head_replicated:
        messages.append(Messages("all_gather", phase, 1, logit_bytes))
    return messages


def exchange_cost(messages: list[Messages], links: LinkCosts | None, pricing: Pricing) -> Cost:
    """What the messages cost together."""
    if links is None:
        return Cost()
    costs = (
        pricing.collective(_cost_of(message, links), message.count, message.message_bytes)
        for message in messages
    )
    return sum(costs, start=Cost())


def _cost_of(message: Messages, links: LinkCosts) -> CollectiveCost:
    if message.collective == "all_gather":
        return links.all_gather
    return links.all_reduce_for(message.message_bytes)
