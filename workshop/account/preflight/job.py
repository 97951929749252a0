"""What preflight looks at: the configuration of one training job, and what follows from it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from workshop.account.preflight.facts import facts
from workshop.account.prices import MAX_RUN_SECONDS, Cost, cost, price_table

FRAMEWORKS = ("tensorflow", "pytorch")
AWS_IMAGE = re.compile(
    r"/(?P<framework>tensorflow|pytorch)-training:(?P<version>[\d.]+)-[cg]pu-(?P<python>py\d+)"
)


class BadConfiguration(ValueError):
    """A field has a value that no job could have; the message names it and what it must be."""


@dataclass(frozen=True)
class JobConfiguration:
    """A training job, as the SDK's TensorFlow(...) and PyTorch(...) describe it.

    framework: "tensorflow" or "pytorch". distribution: as the SDK takes it. image_uri: an image
    of your own; empty if the SDK chooses one. max_run: seconds. script: the entry point's text;
    empty if it is not available. name: for display.

    Raises BadConfiguration for a framework or a distribution that no job could have.
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

    @classmethod
    def from_estimator(cls, estimator, name: str = "job") -> JobConfiguration:
        """The configuration of an estimator of the SDK, or of a ModelTrainer. Nothing is sent.

        Raises BadConfiguration if it is not an estimator of TensorFlow or PyTorch, nor a
        ModelTrainer with an image of AWS's for one of them.
        """
        if hasattr(estimator, "source_code"):
            return cls(**_from_trainer(estimator), name=name)
        if (framework := getattr(estimator, "_framework_name", None)) not in FRAMEWORKS:
            raise BadConfiguration(
                f"{type(estimator).__name__} is not an estimator that preflight knows. It must be "
                "the SDK's TensorFlow(...) or PyTorch(...)."
            )
        return cls(
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
            script=_text_at(estimator.source_dir, estimator.entry_point),
            name=name,
        )

    def __str__(self) -> str:
        version = self.image_uri or f"{self.framework} {self.framework_version}"
        return f"{self.name}: {version} on {self.instance_count} x {self.instance_type}"

    # The dictionary `distribution`

    @property
    def known(self) -> dict[str, object]:
        """The entries of `distribution` whose keys the SDK knows."""
        strategies = facts()["strategies"]
        return {key: value for key, value in self.distribution.items() if key in strategies}

    def state(self, key: str) -> bool | None:
        """Whether a known strategy is switched on; None if its value is neither True nor False."""
        options = self.known[key]
        if key == "smdistributed" and isinstance(options, Mapping):
            options = options.get("dataparallel", {})
        state = options.get("enabled", False) if isinstance(options, Mapping) else None
        return state if isinstance(state, bool) else None

    @cached_property
    def enabled(self) -> set[str]:
        """The strategies that are switched on."""
        return {key for key in self.known if self.state(key)}

    @property
    def strategies(self) -> str:
        """Those that are switched on, in words."""
        return " and ".join(sorted(self.enabled))

    def uses(self, strategy: str, framework: str) -> bool:
        """Whether a strategy is switched on, in this framework."""
        return strategy in self.enabled and self.framework == framework

    @property
    def mpi(self) -> Mapping[str, Any]:
        """The options of mpi; empty if it is not switched on."""
        return self.distribution["mpi"] if "mpi" in self.enabled else {}

    @property
    def processes(self) -> int:
        """How many processes mpirun shall start on each instance; 0 without mpi.

        Unless the request says it, the toolkit takes the number of GPUs, or 1 (its runner.py).
        """
        if not self.mpi:
            return 0
        count = self.mpi.get("processes_per_host") or self.gpus or 1
        return count if isinstance(count, int) else 1

    @property
    def smddp(self) -> bool:
        """Whether the job uses SageMaker's own data parallel library."""
        # pytorchddp runs mpirun for any script of PyTorch.
        by_mpirun = "pytorchddp" in self.enabled and "smddp" in self.script
        return "smdistributed" in self.enabled or by_mpirun

    # Instances

    @property
    def family(self) -> str:
        """Such as "c5" of ml.c5.xlarge."""
        return self.instance_type.removeprefix("ml.").split(".")[0]

    @property
    def processors(self) -> tuple[int, str]:
        """The processors of an instance: (how many, "GPU"), or without GPUs (how many, "vCPU").

        (0, "") if the kit does not know the type's hardware.
        """
        row = price_table()["instances"].get(self.instance_type)
        if row is None:
            return 0, ""
        return (row["gpus"], "GPU") if row["gpus"] else (row["vcpus"], "vCPU")

    @property
    def gpus(self) -> int:
        """GPUs of an instance, as far as they are known."""
        return self.processors[0] if self.processors[1] == "GPU" else 0

    @property
    def efa(self) -> bool:
        """Whether the type has an Elastic Fabric Adapter."""
        return self.instance_type in facts()["efa"]["types"]

    @property
    def cost(self) -> Cost:
        """What it costs at most. Raises PriceNotKnown, ValueError."""
        return cost(self.instance_type, self.instance_count, 0, self.max_run)

    # The image

    @cached_property
    def version(self) -> Version | None:
        """The framework's version, if it is one and no image of the user's own is given."""
        try:
            return None if self.image_uri else Version(self.framework_version or "")
        except InvalidVersion:
            return None

    def newer_than(self, version: str) -> bool:
        """Whether the job's image is known to have a newer framework than this."""
        return self.version is not None and self.version > Version(version)


def _from_trainer(trainer) -> dict[str, Any]:
    """The fields of a ModelTrainer, of version 3 or of version 2's sagemaker.modules."""
    image = AWS_IMAGE.search(trainer.training_image or "")
    if not image:
        raise BadConfiguration(
            f"training_image is {trainer.training_image!r}; preflight knows AWS's images for "
            "training with TensorFlow and PyTorch."
        )
    compute, code, network = trainer.compute, trainer.source_code, trainer.networking
    launcher, distribution = type(trainer.distributed).__name__, {}
    if launcher == "Torchrun":
        distribution = {"torch_distributed": {"enabled": True}}
    elif launcher == "MPI":  # its number is that of all ranks
        each = -(-(trainer.distributed.process_count_per_node or 1) // compute.instance_count)
        options = " ".join(trainer.distributed.mpi_additional_options or ())
        mpi = {"processes_per_host": each, "custom_mpi_options": options}
        distribution = {"mpi": {"enabled": True} | mpi}
    return {
        "framework": image["framework"],
        "instance_type": compute.instance_type,
        "instance_count": compute.instance_count,
        "framework_version": image["version"],
        "py_version": image["python"],
        "distribution": distribution,
        "region": trainer.sagemaker_session.boto_region_name,
        "subnets": tuple(network.subnets or ()) if network else (),
        "security_group_ids": tuple(network.security_group_ids or ()) if network else (),
        "use_spot": bool(compute.enable_managed_spot_training),
        "max_run": trainer.stopping_condition.max_runtime_in_seconds,
        "checkpoint_s3_uri": trainer.checkpoint_config.s3_uri if trainer.checkpoint_config else "",
        "script": _text_at(code.source_dir, code.entry_script),
    }


def _text_at(source_dir: str | None, script: str | None) -> str:
    """The text of an entry point, if it is on this machine; otherwise empty."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return Path(str(source_dir or ""), str(script or "")).read_text(encoding="utf-8")
    return ""
