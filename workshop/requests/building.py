"""Run what a lesson's jobs need, and keep the requests that the SDK writes."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from workshop.course import parameters
from workshop.course.lessons import chosen
from workshop.requests.opening import OpenSession, recording_session
from workshop.requests.recorder import WouldSend
from workshop.requests.slicing import Statement, needed, statements
from workshop.requests.telemetry import WithoutTelemetry

NOTE = "_note_job"  # what stands around the receiver of fit() in the statements that are run


class CannotBuild(Exception):
    """A lesson's requests cannot be had; the message says why and what to do."""


@dataclass(frozen=True)
class BuiltJob:
    """name: for people. request: CreateTrainingJob's. estimator: the SDK's, which wrote it."""

    name: str
    request: dict[str, Any]
    estimator: Any


def build(
    lesson: str,
    target: str = "local",
    given: Mapping[str, Any] | None = None,
    opened: OpenSession | None = None,
) -> list[BuiltJob]:
    """The jobs of a lesson, with the requests that would start them. Nothing is sent.

    Args:
        lesson: its number, "5" or "05".
        target: "local" or "aws".
        given: parameters that override the lesson's own, as papermill would. The ids of subnets and
            groups are placeholders if nobody gives others.
        opened: a session to use in place of one with placeholders.

    Raises:
        CannotBuild: no such parameter, or a job that depends on another one's result.
        workshop.course.lessons.NoSuchLesson: no such lesson.
    """
    path = chosen((lesson,))[0]
    opened = opened or recording_session(target)
    cells = _cells(path, {"target": target} | dict(given or {}), opened.network)
    stand_in = _Workshop(opened)
    kept = needed(statements(cells), frozenset({"workshop"}))
    _run(path, kept, stand_in)
    return [
        BuiltJob(name, request, estimator)
        for (name, estimator), request in zip(stand_in.jobs, opened.recorder.requests, strict=True)
    ]


def _cells(path: Path, given: dict[str, Any], network: dict[str, list[str]]) -> list[str]:
    """The sources of the code cells, with the parameters given after the lesson's own."""
    sources, known = [], {}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type != "code":
            continue
        sources.append(cell.source)
        if "parameters" in cell.metadata.get("tags", []):
            known = parameters.defaults(cell.source)
            assumed = {name: value for name, value in network.items() if name in known}
            values = assumed | {name: given[name] for name in given if name in known}
            sources += [f"{name} = {value!r}" for name, value in values.items()]
    try:
        parameters.check(path.name, given, {"target": "'local'"} | known)
    except parameters.UnknownParameter as error:
        raise CannotBuild(str(error)) from error
    return sources


@contextlib.contextmanager
def _nobodys_shell() -> Iterator[None]:
    """Without the variables by which a shell says who asks AWS, and where.

    The SDK opens a session of its own when it is imported; it must not look for credentials.
    """
    before = dict(os.environ)
    unwanted = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]
    if elsewhere := [name for name in before if name.startswith("AWS_ENDPOINT_URL")]:
        # The local endpoint's defaults for the SDK change no request, and cost seconds for each.
        unwanted += [*elsewhere, "SAGEMAKER_USER_CONFIG_OVERRIDE"]
    for name in unwanted:
        os.environ.pop(name, None)
    os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
    try:
        yield
    finally:
        os.environ.pop("AWS_EC2_METADATA_DISABLED")
        os.environ |= {name: value for name, value in before.items() if name not in os.environ}


class _Workshop:
    """Stands for the module `workshop` in a lesson: opens no other session, starts no job."""

    def __init__(self, opened: OpenSession) -> None:
        self.opened, self.jobs = opened, []

    def __getattr__(self, name: str):
        return getattr(importlib.import_module("workshop"), name)

    def session(self, **_):
        """The recording session, whatever the lesson asks for."""
        return self.opened.session

    def run_jobs(self, estimators: Mapping[str, Any], channels: Any = None) -> None:
        """As workshop.run_jobs, but nobody waits for a job."""
        for name, estimator in estimators.items():
            self.note(estimator, name).fit(channels, wait=False)

    def note(self, estimator, name: str = "") -> WithoutTelemetry:
        """Remember an estimator whose job begins; returns something with its fit()."""
        prefix = self.opened.session.job_prefix
        self.jobs.append((name or str(estimator.base_job_name).removeprefix(prefix), estimator))
        return WithoutTelemetry(estimator)

    def follow(self, *_):
        """No job runs, so there is nothing to follow."""
        raise CannotBuild(
            "A job of this lesson depends on the result of another one, so its request is not "
            "known before that one has run."
        )


def _run(path: Path, kept: list[Statement], stand_in: _Workshop) -> None:
    module = ast.Module([_Noting().visit(one.node) for one in kept], [])
    names = {"workshop": stand_in, NOTE: stand_in.note, "__name__": "lesson"}
    code = compile(ast.fix_missing_locations(module), str(path), "exec")
    try:
        # What cells print is not the request.
        with _nobodys_shell(), contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
    except WouldSend as error:
        raise CannotBuild(f"{path.name}: {error}") from error


class _Noting(ast.NodeTransformer):
    """x.fit(...) becomes _note_job(x).fit(...); everything else stays."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "fit":
            note = ast.Name(NOTE, ast.Load())
            node.func.value = ast.Call(note, [node.func.value], [])
        return node
