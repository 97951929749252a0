"""Everything that the emulator changes about moto."""

from __future__ import annotations

from functools import cache

from local_sagemaker.moto_backend import buckets, iam, logs  # noqa: F401  # importing patches
from local_sagemaker.moto_backend.patch import check_version


def apply_patches(owner_key: str) -> None:
    """Patch moto, but for its CloudFormation. owner_key: id of the emulator's key.

    Raises UnsupportedMoto.
    """
    check_version()
    iam.make_owner_role(owner_key)


@cache
def patch_cloudformation() -> None:
    """Patch moto's CloudFormation and EC2, which take a second to import."""
    check_version()
    from local_sagemaker.moto_backend import cloudformation, templates  # noqa: F401
