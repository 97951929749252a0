"""Policies enforced: a call that the seat's roles do not allow is refused before it is made.

The client refuses, not the endpoint: botocore knows a call's service, operation and parameters,
which a server would have to read out of four protocols. STRICT_POLICIES names a file with
{"NotebookRole": [document, ...], "TrainingRole": [...], "outputs": {...}}.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from aws_calls import Call, World, in_the_vpc, of_the_job
from botocore.exceptions import ClientError
from policy_evaluator import ALLOWED, decision


class Account:
    """What the policies allow, and the tags of what has been made, by whichever process."""

    def __init__(self, policies: dict) -> None:
        self.policies, self.world, self.read = policies, World(), 0
        self.calls = Path(os.environ["RECORD_AWS_CALLS"])

    def catch_up(self) -> None:
        """Look at the calls of other processes, since what they made has tags, too."""
        with self.calls.open() as file:
            file.seek(self.read)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                made = json.loads(line)
                self.world.permissions_for(
                    Call(made["service"], made["operation"], made["request"])
                )
                self.read = file.tell()

    def refused(self, call: Call) -> list[tuple[str, object]]:
        """(role, request) of all that is not allowed: to the caller, and to the job it starts."""
        self.catch_up()
        requests = [("NotebookRole", row) for row in self.world.permissions_for(call)]
        if call.operation == "CreateTrainingJob":
            job = of_the_job(call.request)
            if "VpcConfig" in call.request:
                job += in_the_vpc(self.policies["outputs"])
            requests += [("TrainingRole", row) for row in job]
        return [
            (role, row) for role, row in requests if decision(self.policies[role], row) != ALLOWED
        ]


@functools.cache
def account() -> Account:
    return Account(json.loads(Path(os.environ["STRICT_POLICIES"]).read_text()))


def check(service: str, operation: str, request: dict) -> None:
    """Raise AWS's AccessDenied for a call that is not allowed."""
    plain = json.loads(json.dumps(request, default=lambda value: f"<{type(value).__name__}>"))
    for role, row in account().refused(Call(service, operation, plain)):
        code = "AccessDenied" if service == "s3" else "AccessDeniedException"
        message = f"{role} is not authorized to perform: {row.action} on resource: {row.resource}"
        with Path(os.environ["STRICT_POLICIES"]).with_suffix(".refused").open("a") as file:
            file.write(f"{service} {operation}: {message}\n")
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation)
