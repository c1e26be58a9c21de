"""Entries without the decorator: names, parameters, errors, several in a module."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import TraceError, ptx


def filled(*names: str) -> pt.ModuleBuilder:
    builder = pt.ModuleBuilder()
    for name in names:
        with builder.entry(name, {"A": pt.Tensor((4,), pt.float32)}, block=4) as k:
            k.A[pt.thread_idx("x")] = float(len(name))
    return builder


def test_entries_share_a_module():
    builder = filled("one", "three")
    module = builder.module()
    assert [item.name for item in module.items] == ["one", "three"]
    assert str(builder) == str(module) and pt.check_text(str(module)) == []
    for name in ("one", "three"):
        a = np.zeros(4, np.float32)
        pt.emulator.launch(module, name, 1, 4, [a])
        assert (a == len(name)).all()


@pytest.mark.parametrize("name", ["", "1st", "a-b", "_", "WARP_SZ", "größe", "a b", None])
def test_names_that_ptx_does_not_take(name):
    with pytest.raises(TraceError) as caught:
        pt.ModuleBuilder().entry(name)
    assert str(caught.value) == (
        f"{name!r} cannot name an entry in PTX: letters, digits and _ (not _ alone, not WARP_SZ) are allowed"
    )


def test_names_that_look_like_words_of_ptx_are_fine():
    text = str(filled("add", "reg", "tid", "_x"))
    assert pt.check_text(text) == []
    pytest.importorskip("nvidia", reason="nvidia-nvjitlink is not installed")
    assert pt.assemble(text, "sm_90a")[:4] == b"\x7fELF"


def test_duplicate_names():
    builder = filled("one")
    with pytest.raises(TraceError) as caught:
        builder.entry("one")
    assert str(caught.value) == "this module already has an entry 'one'"
    first, second = builder.entry("two"), builder.entry("two")
    with first:
        pass
    with pytest.raises(TraceError), second:
        pass


def test_a_failed_entry_is_not_in_the_module_and_may_be_tried_again():
    builder = pt.ModuleBuilder()
    with pytest.raises(ZeroDivisionError), builder.entry("k", {}, block=1):
        raise ZeroDivisionError
    with builder.entry("k", {}, block=1):
        pass
    assert len(builder.module().items) == 1


def test_entries_do_not_nest():
    builder = pt.ModuleBuilder()
    with (
        pytest.raises(TraceError) as caught,
        builder.entry("a", {}, block=1),
        builder.entry("b", {}, block=1),
    ):
        pass
    assert str(caught.value) == "a kernel cannot be traced while another is being traced in the same thread"


@pytest.mark.parametrize("name", ["a b", "_", "WARP_SZ", "ä"])
def test_parameters_that_ptx_cannot_name(name):
    with pytest.raises(TraceError) as caught:
        pt.ModuleBuilder().entry("k", {name: pt.uint32})
    assert (
        str(caught.value) == f"{name!r} cannot name a parameter in PTX (letters, digits and _, not WARP_SZ)"
    )


def test_parameters_by_name():
    builder = pt.ModuleBuilder()
    with builder.entry("k", {"A": pt.Tensor((4,), pt.float32), "n": pt.uint32}, block=1) as k:
        assert k.A is k["A"] and k.n is k["n"]
        with pytest.raises(TraceError) as caught:
            _ = k.m
        assert not hasattr(k, "__deepcopy__")
        assert copy.copy(k).n is k.n
    assert str(caught.value) == "this entry has no parameter 'm'; it has A, n"


def test_launch_facts_become_directives():
    builder = pt.ModuleBuilder()
    with builder.entry("k", {}, block=(8, 4), grid=(2, 2), cluster=2):
        assert pt.block_dim("y").value == 4 and pt.grid_dim("x").value == 2
    with builder.entry("open", {}):
        assert pt.block_dim("y").value is None
    text = str(builder)
    assert ".reqntid 8, 4, 1" in text and ".reqnctapercluster 2, 1, 1" in text
    assert ".reqntid" not in text[text.index("open") :]
    assert ".target sm_90\n" in text  # clusters


def test_pins():
    builder = pt.ModuleBuilder(target="sm_100a", version="8.7")
    with builder.entry("k", {}, block=1):
        ptx.bar.sync(0)
    assert str(builder).startswith(".version 8.7\n.target sm_100a\n")


def test_the_parameters_in_ptx():
    builder = pt.ModuleBuilder()
    described = {
        "A": pt.Tensor((4,), pt.float32), "B": pt.Tensor(("M", pt.dim("K", 8)), pt.bfloat16, align=256), "P": pt.Pointer(pt.int8, align=1),
        "h": pt.float16, "e": pt.float8_e5m2, "b": pt.bool_, "i": pt.int16, "d": pt.float64,
    }  # fmt: skip
    with builder.entry("k", described, block=1) as k:
        assert [part.extent.divisor() for part in k.B.shape] == [1, 8]
    text = str(builder)
    for line in (
        ".param .u64 .ptr .global .align 16 A", ".param .u64 .ptr .global .align 256 B", ".param .u64 .ptr .global .align 1 P",
        ".param .b16 h", ".param .b8 e", ".param .u8 b", ".param .s16 i", ".param .f64 d", ".param .u32 size_M", ".param .u32 size_K",
    ):  # fmt: skip
        assert line in text, line
    assert pt.check_text(text) == []


def test_a_label_with_the_name_of_a_parameter():
    builder = pt.ModuleBuilder()
    with pytest.raises(TraceError) as caught, builder.entry("k", {"A": pt.uint32}, block=1):
        pt.label("A")
    assert str(caught.value) == "k: the label 'A' has the name of a parameter"
