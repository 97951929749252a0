"""An account on AWS, as the lessons see it: target="aws", answered by the emulator.

botocore takes the emulator's address from the profile in AWS_CONFIG_FILE; `workshop` looks only
whether a variable of the shell leads elsewhere. So the code under test is that of target="aws".
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import lesson_runs
import pytest
from deployed_policies import seat_of

from local_sagemaker.pytest_plugin import emulator
from workshop.account import stacks
from workshop.jobs import local_server
from workshop.jobs.session import session

SEAT = lesson_runs.SEAT
NAMES = ("storage", "roles", "network")


@contextlib.contextmanager
def empty_account(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """An account in which nothing is. Yields what sets variables for as long as it is there."""
    state = folder / "state"
    with emulator(state) as running, pytest.MonkeyPatch.context() as patch:
        where = running.env
        for name in [row for row in os.environ if row.startswith("AWS_")]:
            patch.delenv(name)
        patch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", where["SAGEMAKER_USER_CONFIG_OVERRIDE"])
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name, lines in {
            "config": [
                f"region = {where['AWS_DEFAULT_REGION']}",
                f"endpoint_url = {where['AWS_ENDPOINT_URL']}",
            ],
            "credentials": [
                f"aws_access_key_id = {where['AWS_ACCESS_KEY_ID']}",
                f"aws_secret_access_key = {where['AWS_SECRET_ACCESS_KEY']}",
            ],
        }.items():
            (folder / name).write_text("\n".join(["[default]", *lines, ""]))
        patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        yield patch
        local_server.point_back()


def owner(names: Iterable[str] = NAMES):
    """The seat's session, after its stacks were made as `workshop stacks up` makes them."""
    opened = session("aws", SEAT)
    stacks.deploy(opened, names, log=lambda _: None)
    return opened


def enforce(patch: pytest.MonkeyPatch, opened, folder: Path) -> Path:
    """Refuse, in processes that are started from now on, what the seat's roles do not allow.

    Returns the file in which refusals are noted.
    """
    seat, file = seat_of(opened, NAMES), folder / "policies.json"
    file.write_text(json.dumps({**seat.policies, "outputs": dict(seat.outputs)}))
    patch.setenv("STRICT_POLICIES", str(file))
    return file.with_suffix(".refused")
