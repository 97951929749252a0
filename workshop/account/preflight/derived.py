"""What follows from a job's configuration: its strategies, its image, its hardware."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

from packaging.version import InvalidVersion, Version

from workshop.account.preflight.facts import facts, sagemaker_regions, training_types
from workshop.account.preflight.job import JobConfiguration
from workshop.account.prices import price_table


class Job:
    """A job's configuration and what follows from it: what rules ask, and their sentences name."""

    def __init__(self, configuration: JobConfiguration) -> None:
        self.configuration = configuration

    def __getattr__(self, name: str):
        return getattr(self.configuration, name)

    # The dictionary `distribution`

    @cached_property
    def known(self) -> dict[str, object]:
        """The entries of `distribution` whose keys the SDK knows."""
        strategies = facts()["strategies"]
        return {key: value for key, value in self.distribution.items() if key in strategies}

    @cached_property
    def enabled(self) -> set[str]:
        """The strategies that are switched on."""
        options = {key: value for key, value in self.known.items() if isinstance(value, Mapping)}
        if "smdistributed" in options:
            options["smdistributed"] = options["smdistributed"].get("dataparallel")
        return {
            key
            for key, value in options.items()
            if isinstance(value, Mapping) and value.get("enabled") is True
        }

    @property
    def strategies(self) -> str:
        """Those that are switched on, in words."""
        return " and ".join(sorted(self.enabled))

    @property
    def mpi(self) -> Mapping:
        """The options of mpi, if it is switched on."""
        return self.distribution["mpi"] if "mpi" in self.enabled else {}

    @property
    def processes(self) -> object:
        """How many processes mpirun shall start on each instance; None without mpi."""
        return self.mpi.get("processes_per_host", 1) if self.mpi else None

    @property
    def mpi_options(self) -> object:
        """The additional options of mpirun."""
        return self.mpi.get("custom_mpi_options", "")

    @property
    def smddp(self) -> bool:
        """Whether the job uses SageMaker's own data parallel library."""
        # pytorchddp runs mpirun for any script of PyTorch.
        by_mpirun = "pytorchddp" in self.enabled and "smddp" in self.script
        return "smdistributed" in self.enabled or by_mpirun

    @property
    def last_horovod(self) -> str:
        """The last version of the framework whose image has Horovod."""
        return facts()["horovod"][self.framework]

    # Instances

    @property
    def family(self) -> str:
        """Such as "c5" of ml.c5.xlarge."""
        return self.instance_type.removeprefix("ml.").split(".")[0]

    @property
    def places(self) -> tuple[int, str]:
        """How many processes an instance has a GPU or else a vCPU for, and which of the two.

        (0, "") if the kit does not know the type's hardware.
        """
        row = price_table()["instances"].get(self.instance_type)
        if row is None:
            return 0, ""
        return (row["gpus"], "GPU") if row["gpus"] else (row["vcpus"], "vCPU")

    @property
    def hardware(self) -> str:
        """Such as "4 vCPUs" or "1 GPU"."""
        count, what = self.places
        return f"{count} {what}{'s' * (count != 1)}"

    @property
    def gpus(self) -> int:
        """GPUs of an instance, as far as they are known."""
        return self.places[0] if self.places[1] == "GPU" else 0

    @property
    def offered(self) -> list[str]:
        """The regions that have the type; empty if that is not known of it or of the region."""
        regions = facts()["regions"]
        return regions.get(self.instance_type, []) if self.region in regions["recorded"] else []

    @property
    def efa(self) -> bool:
        """Whether the type has an Elastic Fabric Adapter."""
        return self.instance_type in facts()["efa"]["types"]

    # The image

    @cached_property
    def versions(self) -> list[str]:
        """The versions of the job's framework that have an image, oldest first."""
        return sorted(_table(self)["versions"], key=Version) or ["none"]

    @cached_property
    def full_version(self) -> str:
        """The version with all three numbers: the SDK takes "2.12" for "2.12.0"."""
        aliases = _table(self).get("version_aliases", {})
        return aliases.get(self.framework_version, self.framework_version)

    @cached_property
    def version(self) -> Version | None:
        """The framework's version, if it is one and no image of the user's own is given."""
        try:
            return None if self.image_uri else Version(self.full_version)
        except InvalidVersion:
            return None

    @cached_property
    def pythons(self) -> list[str]:
        """The Pythons of the version's image; none if it has no image."""
        row = _table(self)["versions"].get(self.full_version, {})
        # The oldest versions have a row for each Python in place of a list.
        return row.get("py_versions") or list(row)

    @property
    def python(self) -> Version | None:
        """The Python of the job's image: "py310" is 3.10; None for an image of the user's own."""
        digits = (self.py_version or "").removeprefix("py")
        return Version(f"{digits[:1]}.{digits[1:] or 0}") if digits.isdecimal() else None

    @cached_property
    def image(self) -> str:
        """The image's address, as the SDK resolves it. ValueError if it has none."""
        if self.image_uri:
            return self.image_uri
        version, python = self.framework_version, self.py_version
        if self.instance_type in training_types() and self.region in sagemaker_regions():
            return _retrieved(self.framework, self.region, version, python, self.instance_type)
        return f"{self.framework} {version}, {python}"


@cache  # the SDK reads its tables anew for each image
def _retrieved(framework: str, region: str, version: str, python: str, instance_type: str) -> str:
    from sagemaker import image_uris  # slow

    return image_uris.retrieve(
        framework,
        region,
        version=version,
        py_version=python,
        instance_type=instance_type,
        image_scope="training",
    )


def _table(job: Job) -> dict:
    """The SDK's table of training images. Trainium has images of its own."""
    return _read_table(job.framework + ("-neuron" if job.family.startswith("trn") else ""))


@cache
def _read_table(framework: str) -> dict:
    """A table by its name in the SDK; empty if it has none."""
    from sagemaker import image_uris  # slow

    try:
        return image_uris.config_for_framework(framework)["training"]
    except FileNotFoundError:
        return {"versions": {}}
