"""Context refines a class that the name alone cannot decide."""

from __future__ import annotations

import pytest
from harness import kernel, numbered, warehouse_of

SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, float,"
    " at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, c10::BFloat16 const*, int)"
)
ATTENTION = "flash_fwd_splitkv_kernel"


@pytest.mark.parametrize(
    ("beside", "category"), [(ATTENTION, "sampling"), ("gemv2T_kernel_val", "unclassified")]
)
def test_a_nameless_softmax_is_sampling_where_attention_is_fused(
    beside: str, category: str
) -> None:
    """With attention kernels of its own a capture has no other softmax than that over logits."""
    names = [{"name_id": 0, "name": SOFTMAX}, {"name_id": 1, "name": beside}]
    kernels = [kernel(0, 5, name_id=0), kernel(10, 20, name_id=1)]
    raw = {"names": names, "kernels": numbered(kernels, "kernel_id")}
    warehouse = warehouse_of(raw, ["int_gpu_events"])
    found = warehouse.execute("SELECT category FROM int_gpu_events WHERE name_id = 0").fetchall()
    warehouse.close()
    assert found == [(category,)]
