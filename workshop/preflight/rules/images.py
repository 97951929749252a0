"""Framework version and Python version: is there an image for them?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from packaging.version import InvalidVersion, Version

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import sagemaker_regions, training_types
from workshop.preflight.finding import Finding, bad

WHAT = "image"


def describe(job: JobConfiguration) -> str:
    """The image that the job would run in."""
    return f"{image(job)}"


def check(job: JobConfiguration) -> Iterator[Finding]:
    """A version without an image, and a Python that the version's image does not have."""
    if job.image_uri:
        return
    versions = _table(_framework(job))["versions"]
    full = full_version(job)
    if full not in versions:
        yield bad(
            WHAT,
            f"The SDK knows no {job.framework} image of version {job.framework_version}; the "
            f"newest that it knows is {_newest(versions)}.",
            f"Take one of: {', '.join(_last(versions, 6))}; or give the image_uri of a newer one.",
            "sdk-images",
        )
    elif job.py_version not in (pythons := _pythons(versions[full])):
        yield bad(
            WHAT,
            f"The image of {job.framework} {full} has no Python {job.py_version!r}.",
            f"Write py_version={' or '.join(map(repr, pythons))}.",
            "sdk-images",
        )
    else:
        yield from _resolved(job)


def _resolved(job: JobConfiguration) -> Iterator[Finding]:
    try:
        image(job)
    except ValueError as error:
        yield bad(WHAT, f"The SDK finds no image: {error}", "Give an image_uri.", "sdk-images")


def full_version(job: JobConfiguration) -> str:
    """The version with all three numbers: the SDK takes "2.12" for "2.12.0"."""
    aliases = _table(_framework(job)).get("version_aliases", {})
    return aliases.get(job.framework_version, job.framework_version)


def version(job: JobConfiguration) -> Version | None:
    """The framework's version, if it is one and no image of the user's own is given."""
    if job.image_uri:
        return None
    try:
        return Version(full_version(job))
    except InvalidVersion:
        return None


def image(job: JobConfiguration) -> str:
    """The image's address, as the SDK resolves it. ValueError if it has none."""
    if job.image_uri:
        return job.image_uri
    known = job.instance_type in training_types() and job.region in sagemaker_regions()
    if not known:
        return f"{job.framework} {job.framework_version}, {job.py_version}"
    return _retrieved(
        job.framework, job.region, job.framework_version, job.py_version, job.instance_type
    )


@cache  # the SDK reads its tables anew for each image
def _retrieved(framework: str, region: str, number: str, python: str, instance_type: str) -> str:
    from sagemaker import image_uris

    return image_uris.retrieve(
        framework,
        region,
        version=number,
        py_version=python,
        instance_type=instance_type,
        image_scope="training",
    )


def _framework(job: JobConfiguration) -> str:
    """The name of the SDK's table: Trainium has images of its own."""
    return job.framework + ("-neuron" if job.instance_type.startswith("ml.trn") else "")


@cache
def _table(framework: str) -> dict:
    """The SDK's table of training images; empty if it has none."""
    from sagemaker import image_uris  # slow

    try:
        return image_uris.config_for_framework(framework)["training"]
    except FileNotFoundError:
        return {"versions": {}}


def _pythons(row: dict) -> list[str]:
    """The Pythons of a version. The oldest versions have a row for each in place of a list."""
    return row.get("py_versions") or list(row)


def _last(versions: dict, count: int) -> list[str]:
    return sorted(versions, key=Version)[-count:]


def _newest(versions: dict) -> str:
    return (_last(versions, 1) or ["none"])[0]
