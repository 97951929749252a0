"""What preflight looks at: the configuration of one training job."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workshop.jobs.session import MAX_RUN_SECONDS

FRAMEWORKS = ("tensorflow", "pytorch")


class BadConfiguration(ValueError):
    """A field has a value that no job could have; the message names it and what it must be."""


@dataclass(frozen=True)
class JobConfiguration:
    """A training job, as the SDK's TensorFlow(...) and PyTorch(...) describe it.

    framework: "tensorflow" or "pytorch". distribution: as the SDK takes it. image_uri: an image
    of your own; empty if the SDK chooses one. max_run, keep_alive, seconds: seconds; keep_alive is
    0 without a warm pool, seconds is what the job is expected to be billed, if known.
    script: the entry point's text; empty if it is not available. name: for display.

    Raises BadConfiguration for a framework, a number or ids that no job could have.
    """

    framework: str
    instance_type: str
    instance_count: int = 1
    framework_version: str | None = None
    py_version: str | None = None
    distribution: Mapping[str, Any] = field(default_factory=dict)
    image_uri: str = ""
    region: str = "us-east-1"
    subnets: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    use_spot: bool = False
    max_run: int = MAX_RUN_SECONDS
    checkpoint_s3_uri: str = ""
    keep_alive: int = 0
    seconds: float | None = None
    script: str = ""
    name: str = "job"

    def __post_init__(self) -> None:
        if self.framework not in FRAMEWORKS:
            raise BadConfiguration(
                f"framework is {self.framework!r}; it must be one of: {', '.join(FRAMEWORKS)}."
            )
        if not isinstance(self.distribution, Mapping):
            raise BadConfiguration(
                f"distribution is {self.distribution!r}; it must be a dictionary, for example "
                '{"mpi": {"enabled": True}}, or empty.'
            )
        for name in ("instance_count", "max_run", "keep_alive"):
            if type(getattr(self, name)) is not int:
                raise BadConfiguration(f"{name} is {getattr(self, name)!r}; it must be an int.")
        for name in ("subnets", "security_group_ids"):
            if not isinstance(getattr(self, name), tuple):
                raise BadConfiguration(f"{name} is {getattr(self, name)!r}; it must be a tuple.")
        if not self.image_uri and not (self.framework_version and self.py_version):
            raise BadConfiguration(
                "framework_version and py_version are needed, or an image_uri in their place."
            )

    def __str__(self) -> str:
        version = self.image_uri or f"{self.framework} {self.framework_version}"
        return f"{self.name}: {version} on {self.instance_count} x {self.instance_type}"


def of(estimator, name: str = "job", seconds: float | None = None) -> JobConfiguration:
    """The configuration of an estimator of the sagemaker SDK. Nothing is sent.

    Raises BadConfiguration if it is not an estimator of TensorFlow or PyTorch.
    """
    if (framework := getattr(estimator, "_framework_name", None)) not in FRAMEWORKS:
        raise BadConfiguration(
            f"{type(estimator).__name__} is not an estimator that preflight knows. It must be "
            "the SDK's TensorFlow(...) or PyTorch(...)."
        )
    return JobConfiguration(
        framework=framework,
        instance_type=estimator.instance_type,
        instance_count=estimator.instance_count,
        framework_version=estimator.framework_version,
        py_version=estimator.py_version,
        distribution=estimator.distribution or {},
        image_uri=estimator.image_uri or "",
        region=estimator.sagemaker_session.boto_region_name,
        subnets=tuple(estimator.subnets or ()),
        security_group_ids=tuple(estimator.security_group_ids or ()),
        use_spot=bool(estimator.use_spot_instances),
        max_run=estimator.max_run,
        checkpoint_s3_uri=estimator.checkpoint_s3_uri or "",
        keep_alive=estimator.keep_alive_period_in_seconds or 0,
        seconds=seconds,
        script=_text_of(estimator),
        name=name,
    )


def _text_of(estimator) -> str:
    """The entry point of an estimator, if it is on this machine; otherwise empty."""
    path = Path(str(estimator.source_dir or ""), str(estimator.entry_point or ""))
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    return ""
