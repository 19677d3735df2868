"""Which delivery may start, resend or release the leased pack of a host."""

from __future__ import annotations

import pytest

from orbweaver.frontier.backlog import Lease, WaitingPack
from orbweaver.worker.lease import (
    Asker,
    HandOver,
    Phase,
    ResendPack,
    Rest,
    StartPack,
    Step,
    step_of,
)

OWN, NEXT = "1.own", WaitingPack(place="1.next", body="{}")
FREE, LAPSED, HELD, OWN_HELD = ("", False), (OWN, False), ("1.out", True), (OWN, True)
START, RESEND, HAND_OVER = StartPack(NEXT), ResendPack("1.out"), HandOver(NEXT)
LEAVE, RELEASE = Rest.LEAVE, Rest.RELEASE
# For each lease (place, holder): the steps of UNSENT, DONE and DEAD deliveries of the pack "p".
STEPS: dict[tuple[tuple[str, bool], str], tuple[Step, Step, Step]] = {
    (FREE, ""): (START, LEAVE, LEAVE),
    (FREE, "q"): (START, LEAVE, LEAVE),
    (FREE, "p"): (START, START, START),
    (FREE, "copy/p"): (START, START, START),
    (LAPSED, "q"): (START, START, START),
    (HELD, "q"): (LEAVE, LEAVE, LEAVE),
    (HELD, "copy/q"): (LEAVE, LEAVE, LEAVE),
    (HELD, "p"): (RESEND, LEAVE, RESEND),
    (HELD, "copy/p"): (RESEND, RESEND, RESEND),
    (OWN_HELD, "q"): (HAND_OVER, LEAVE, LEAVE),
}


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(("state", "holder"), STEPS)
def test_step_depends_on_lease_and_asker(
    state: tuple[str, bool], holder: str, phase: Phase
) -> None:
    place, is_held = state
    lease = Lease(epoch=3, place=place, is_held=is_held, holder=holder, first=NEXT)
    asker = Asker(pack="p", phase=phase, place=OWN)
    assert step_of(lease, asker) == STEPS[state, holder][[*Phase].index(phase)]


@pytest.mark.parametrize(
    ("phase", "holder", "place", "step"),
    [
        (Phase.UNSENT, "copy/p", "", LEAVE),
        (Phase.DONE, "copy/p", "", RELEASE),
        (Phase.DEAD, "copy/p", "", RELEASE),
        (Phase.DONE, "p", "", RELEASE),
        (Phase.DONE, "q", "", LEAVE),
        (Phase.UNSENT, "q", OWN, LEAVE),  # there is no pack to hand over
    ],
)
def test_step_with_empty_backlog_ends_right_to_acquire(
    phase: Phase, holder: str, place: str, step: Step
) -> None:
    lease = Lease(epoch=3, place=place, is_held=bool(place), holder=holder)
    assert step_of(lease, Asker(pack="p", phase=phase, place=OWN)) == step


def test_acquisition_depends_on_ledger_before_outbox_is_sent() -> None:
    askers = [Asker(pack="p", phase=phase) for phase in Phase]
    assert [(one.holder, one.unsent) for one in askers] == [
        ("p", "p"),
        ("copy/p", ""),
        ("copy/p", ""),
    ]
