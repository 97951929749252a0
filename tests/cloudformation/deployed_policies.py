"""The policies of seats as the stacks deploy them: made by moto in this process, read back."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pytest
import stacks_harness
from linting_helpers import role_policies
from policy_evaluator import Request, allows

from workshop.account import stacks

NAMES = ("storage", "roles", "network")


@dataclass(frozen=True)
class Seat:
    """A seat that stands. policies: "NotebookRole", "TrainingRole" -> documents."""

    name: str
    outputs: Mapping[str, str]
    policies: Mapping[str, list[dict]]

    def refused(self, role: str, requests: Iterable[Request]) -> list[Request]:
        """Those of the requests that a role's policies do not allow."""
        documents = self.policies[role]
        return [row for row in requests if not allows(documents, row)]


@contextlib.contextmanager
def standing(*names: str, stacks_of: Iterable[str] = NAMES) -> Iterator[list[Seat]]:
    """Seats with these names and stacks, on moto."""
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        patch.setattr(stacks, "upload_kit", lambda session: None)
        sessions = [stacks_harness.session(name) for name in names]
        for session in sessions:
            given = {"Email": "a@b.org"} if "budget" in stacks_of else {}
            stacks.deploy(session, stacks_of, lambda _: None, given)
        yield [seat_of(session, stacks_of) for session in sessions]


def seat_of(session, stacks_of: Iterable[str]) -> Seat:
    """A seat whose stacks are there."""
    policies: dict[str, list[dict]] = {}
    for place, document in role_policies(session, f"workshop-{session.seat}-roles").items():
        policies.setdefault(place.split("/")[0], []).append(document)
    return Seat(session.seat, stacks.outputs(session, stacks_of), policies)
