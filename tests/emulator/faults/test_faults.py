"""Faults in otherwise right kernels: each is found, with its kind and at its line; the right kernels give nothing."""

from __future__ import annotations

import pytest

from ptxtile.emulator import EmulatorError
from tests.emulator.faults import (
    blackwell,
    bulk,
    clusters,
    copies,
    handshakes,
    memory,
    neighbours,
    registers,
    rounds,
)
from tests.emulator.faults.case import Case, Fault

MODULES = (copies, registers, blackwell, bulk, handshakes, memory, rounds, clusters, neighbours)
CASES = [case for module in MODULES for case in module.CASES]
FAULTS = [
    pytest.param(case, fault, id=f"{case.name}: {fault.name}") for case in CASES for fault in case.faults
]
LEGAL = [pytest.param(case, name, id=f"{case.name}: {name}") for case in CASES for name in case.legal]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_a_right_kernel_gives_nothing(case: Case) -> None:
    for seed in (0, 1, 2):
        case.check(case.text, seed, True)
    case.check(case.text, 0, False)


@pytest.mark.parametrize(("case", "name"), LEGAL)
def test_a_legal_variant_gives_nothing(case: Case, name: str) -> None:
    for seed in (0, 1):
        case.check(case.varied(name), seed, True)


@pytest.mark.parametrize(("case", "fault"), FAULTS)
def test_a_fault_is_found(case: Case, fault: Fault) -> None:
    text = case.broken(fault)
    with pytest.raises(EmulatorError) as caught:
        case.check(text, 0, True)
    assert caught.value.kind in fault.kind.split(" or "), str(caught.value)
    line = text.splitlines()[caught.value.line - 1]
    assert line.startswith(tuple(fault.where.split(" or "))), str(caught.value)


def test_there_are_enough_of_them() -> None:
    assert len(FAULTS) > 150
    hazards = [
        fault for case in CASES for fault in case.faults if fault.kind in ("in-flight", "proxy", "exit")
    ]
    assert len(hazards) > 40
