"""The `ptx` object: chains, names, completion."""

from __future__ import annotations

import copy
import functools
import pickle

import pytest

from ptxtile.errors import FormAttributeError, FormError, TraceError
from ptxtile.isa import Form, ptx, validate
from ptxtile.isa.namespace import attribute, word


def test_chain_and_item_are_one_form() -> None:
    assert ptx.fma.rn.f32 is ptx["fma.rn.f32"] is validate("fma.rn.f32")
    assert ptx.fma.f32.rn is ptx["fma.f32.rn"] is ptx.fma.rn.f32
    assert ptx.ld.global_.v4.b32.spelling == "ld.global.v4.b32"
    assert ptx.ld.shared__cta.u32.spelling == "ld.shared::cta.u32"
    assert ptx.and_.b32.spelling == "and.b32"


def test_a_form_may_go_on() -> None:
    assert isinstance(ptx.bra, Form) and ptx.bra.uni is ptx["bra.uni"]
    assert not isinstance(ptx.fma.rn, Form)


@pytest.mark.parametrize(
    "spelling",
    [
        "wgmma.fence.sync.aligned",
        "wgmma.wait_group.sync.aligned",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile",
    ],
)
def test_what_may_be_left_out_may_be_written(spelling: str) -> None:
    """`ptx.wgmma.fence.sync` is a form already; that does not eat the `.aligned` after it."""
    found = functools.reduce(getattr, map(attribute, spelling.split(".")), ptx)
    assert found is ptx[spelling] and found.spelling == spelling


def test_a_modifier_too_many_is_none() -> None:
    with pytest.raises(FormAttributeError) as error:
        _ = ptx.wgmma.fence.sync.aligned.uni
    assert str(error.value) == (
        "wgmma.fence.sync.aligned.uni is not a PTX form\n"
        "  wgmma.fence.sync.aligned.uni\n"
        "                           ^^^ .uni is no modifier of wgmma; nothing may follow wgmma.fence.sync.aligned\n"
        "  close by: wgmma.fence.sync.aligned"
    )


@pytest.mark.parametrize("text", [".shared::cta", ".1d", ".and", "and", ".L2::128B", ".b4x16_p64", ".global"])
def test_names_go_both_ways(text: str) -> None:
    assert attribute(text).isidentifier() and word(attribute(text)) == text.lstrip(".")


def test_completion() -> None:
    assert {"fma", "and_", "ld"} <= set(dir(ptx))
    assert dir(ptx.sqrt) == ["approx", "rm", "rn", "rp", "rz"]
    assert {"ftz", "f32", "bf16x2"} <= set(dir(ptx.fma.rn)) and "rn" not in dir(ptx.fma.rn)
    assert {"uni", "spelling"} <= set(dir(ptx.bra))


def test_representations() -> None:
    assert (repr(ptx), repr(ptx.fma.rn), repr(ptx.fma.rn.f32)) == (
        "ptx",
        "ptx['fma.rn'] …",
        "ptx['fma.rn.f32']",
    )


def test_wrong_turns() -> None:
    with pytest.raises(FormAttributeError) as error:
        _ = ptx.sqrt.rx
    assert str(error.value).splitlines()[:3] == [
        "sqrt.rx is not a PTX form",
        "  sqrt.rx",
        "       ^^ .rx is no modifier of sqrt; after sqrt may stand one of .approx, .rn, .rz, .rm, .rp",
    ]
    assert isinstance(error.value, AttributeError) and isinstance(error.value, FormError)
    assert (
        not hasattr(ptx, "nonsense")
        and not hasattr(ptx.fma, "_repr_html_")
        and not hasattr(ptx.bra, "__len__")
    )


def test_calls() -> None:
    with pytest.raises(FormError) as error:
        ptx.sqrt.rn(1, 2)
    assert str(error.value).splitlines()[2] == "         ^ it lacks one of .f32, .f64"
    with pytest.raises(TraceError):
        ptx.fma.rn.f32(1, 2, 3, 4)


def test_copies_are_the_same_form() -> None:
    form = ptx.fma.rn.f32
    assert (
        copy.copy(form) is form and copy.deepcopy(form) is form and pickle.loads(pickle.dumps(form)) is form
    )
