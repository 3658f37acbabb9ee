"""One kernel, several spellings, one class: Nsight, torch, ROCm, Triton and mangled names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from classifier import classify, corpus

MIN_WITH_MANGLING = 0.98


def nsight(name: str) -> str:
    """The spelling of Nsight for a name as torch traces print it."""
    head, _, _ = name.rpartition("(") if name.endswith(")") else (name, "", "")
    text = re.sub(r"\{lambda\((.*?)\)#(\d+)\}", r"[lambda(\1) (instance \2)]", head)
    text = re.sub(r"(?<=[<, ])(\d+)ul\b", r"(unsigned long)\1", text)
    text = re.sub(r"(?<=[<, ])(\d+)u\b", r"(unsigned int)\1", text)
    text = re.sub(r"(?<=[<, ])(-?\d+)(?=[,>])", r"(int)\1", text)
    text = re.sub(r"(?<=[<, ])true(?=[,>])", "(bool)1", text)
    text = re.sub(r"(?<=[<, ])false(?=[,>])", "(bool)0", text)
    text = re.sub(r"\b(\w+) const\*", r"const \1 *", text)
    text = text.replace("(anonymous namespace)", "<unnamed>").replace("> >", ">>")
    return f"{text}(T1, int, T2 *)" if text != name else name


def mangled(name: str) -> str | None:
    """The Itanium spelling of a plain function with namespaces, None for anything else."""
    path = re.fullmatch(r"(?:void )?((?:\w+::)+\w+)\(.*\)", name)
    if path is None:
        return None
    return "_ZN" + "".join(f"{len(part)}{part}" for part in path[1].split("::")) + "Ev"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "nsight": nsight,
    "lower case": str.lower,
    "upper case": str.upper,
    "rocm": lambda name: f"{name}.kd",
    "clone": lambda name: f"{name} [clone .kd]",
    "spaces": lambda name: name.replace(" ", "  ") + "\n",
    "old angles": lambda name: name.replace(">>", "> >"),
    "new angles": lambda name: name.replace("> >", ">>"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spelling_changes_no_class(shared: Path, spelling: str) -> None:
    """A name of the corpus keeps class and rule however a format prints it."""
    names = [x.name for x in corpus(shared)]
    respelled = [SPELLINGS[spelling](name) for name in names]
    before, after = classify(names), classify(respelled)
    changed = [
        (b.name, a.name, b.rule, a.rule)
        for b, a in zip(before, after, strict=True)
        if b.rule != a.rule
    ]
    assert respelled != names
    assert changed == []


def test_triton_suffix_changes_no_class(shared: Path) -> None:
    """Names that Triton before version 3 extended by its argument signature keep their class."""
    names = [x.name for x in corpus(shared) if re.fullmatch(r"_?[a-z]\w+_kernel\w*", x.name)]
    before, after = classify(names), classify([f"{name}_0d1d2d3de4c5" for name in names])
    assert len(names) > 100
    assert [a.normal_name for a in after] == [b.normal_name for b in before]


def test_mangled_functions_keep_their_class(shared: Path) -> None:
    """A plain function that stayed mangled is cut into words that decide as before."""
    pairs = [(x.name, m) for x in corpus(shared) if (m := mangled(x.name)) is not None]
    before = classify([name for name, _ in pairs])
    after = classify([m for _, m in pairs])
    same = sum(b.category == a.category for b, a in zip(before, after, strict=True))
    assert len(pairs) >= 10
    assert same >= MIN_WITH_MANGLING * len(pairs)


ONE_KERNEL = {
    "gemvx": [
        "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, __nv_bfloat16, (int)6>(T13)",
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, __nv_bfloat16, 6>(x)",
        "internal::gemvx::kernel<int, __nv_bfloat16, 6>",
    ],
    "silu": [
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::<unnamed>::silu_kernel("
        "at::TensorIteratorBase &)::[lambda() (instance 1)]::operator ()() const::"
        "[lambda(float) (instance 2)], std::array<char *, (unsigned long)2>>(int, T2, T3)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::"
        "silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#2},"
        " std::array<char*, 2ul> >(int, x, y)",
    ],
    "wrapped": [
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_tn>(T1)",
        "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_tn>("
        "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x1_tn::Params)",
    ],
}


@pytest.mark.parametrize("kernel", ONE_KERNEL)
def test_formats_meet_in_one_canonical_spelling(kernel: str) -> None:
    """What Nsight and torch print for one kernel becomes the same text."""
    assert len({c.normal_name for c in classify(ONE_KERNEL[kernel])}) == 1
