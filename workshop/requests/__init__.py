"""The CreateTrainingJob requests of a lesson's jobs, without sending one.

    from workshop.requests import build

    for job in build("05", target="aws"):
        print(job.name, job.request["AlgorithmSpecification"]["TrainingImage"])

The jobs are described in the lessons' own cells, and nowhere else. `slicing` picks the statements
that a job needs, `building` runs them, and the unmodified sagemaker SDK writes the request; what
it would send goes to a `recorder`. So neither credentials nor a running endpoint are needed.
"""

from workshop.requests.building import BuiltJob, CannotBuild, build
from workshop.requests.opening import (
    NO_NETWORK,
    OpenSession,
    placeholders,
    recording_session,
)
from workshop.requests.telemetry import WithoutTelemetry

__all__ = [
    "NO_NETWORK",
    "BuiltJob",
    "CannotBuild",
    "OpenSession",
    "WithoutTelemetry",
    "build",
    "placeholders",
    "recording_session",
]
