"""A model as a worker needs it: CreateModel's container, and the files of its model.tar.gz."""

from __future__ import annotations

import dataclasses
import tarfile
from pathlib import Path
from typing import Any

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sagemaker.exceptions import ValidationError

from local_sagemaker.core.aws import LocalAws, split_uri
from local_sagemaker.core.s3_input import DataError, download, download_below
from local_sagemaker.protocol.errors import AwsError, validation

NOT_FOUND = "Could not find model data at"
SUBMIT_DIRECTORY = "SAGEMAKER_SUBMIT_DIRECTORY"


@dataclasses.dataclass
class Container:
    """What of CreateModel a worker needs. data: S3 URI of a model.tar.gz or of a prefix that ends
    with "/", or None."""

    model: str
    image: str
    data: str | None
    environment: dict[str, str]


def moto_sagemaker(region: str) -> Any:
    """moto's SageMaker, which keeps models and endpoint configurations."""
    return get_backend("sagemaker")[DEFAULT_ACCOUNT_ID][region]


def container(name: str, region: str) -> Container:
    """The container of a model. Raises AwsError where there is none, or one not offered here."""
    try:
        model = moto_sagemaker(region).describe_model(name).response_object
    except ValidationError as error:
        raise validation(error.message) from error
    several = model.get("Containers") or []
    definition = model.get("PrimaryContainer") or (several[0] if several else {})
    if len(several) > 1:
        raise _not_offered(name, "a pipeline of several containers")
    if definition.get("Mode") == "MultiModel":
        raise _not_offered(name, "a container that serves several models (MultiModel)")
    environment = dict(definition.get("Environment") or {})
    return Container(name, definition.get("Image", ""), _data(name, definition), environment)


def _data(name: str, definition: dict) -> str | None:
    """Where a container's files are: an archive, or with "/" at its end a prefix of objects."""
    source = (definition.get("ModelDataSource") or {}).get("S3DataSource")
    if not source:
        return definition.get("ModelDataUrl")
    if source.get("CompressionType") == "None" and source.get("S3DataType") == "S3Prefix":
        return source["S3Uri"].rstrip("/") + "/"
    if source.get("CompressionType") == "Gzip" and source.get("S3DataType") == "S3Object":
        return source["S3Uri"]
    raise _not_offered(name, "a ModelDataSource other than an S3Prefix (None) or S3Object (Gzip)")


def _not_offered(name: str, feature: str) -> AwsError:
    return validation(f"Model {name} has {feature}: the emulator does not offer that.")


def fetch(aws: LocalAws, container: Container, region: str, folder: Path) -> None:
    """Unpack the model's archive into `folder`, and code that lies elsewhere into folder/code.

    Raises DataError.
    """
    if not container.data:
        raise DataError(
            f"Model {container.model} has no ModelDataUrl. The emulator pulls no image: it "
            "serves what a model.tar.gz holds."
        )
    folder.mkdir(parents=True, exist_ok=True)
    if container.data.endswith("/"):
        if not download_below(aws, region, container.data, folder, NOT_FOUND):
            raise DataError(f"{NOT_FOUND} {container.data}: there is no object.")
    else:
        _unpack(aws, container.data, region, folder)
    code = container.environment.get(SUBMIT_DIRECTORY, "")
    if code.startswith("s3://"):
        _unpack(aws, code, region, folder / "code")


def _unpack(aws: LocalAws, uri: str, region: str, folder: Path) -> None:
    # It keeps every member inside its folder. Imported here: it sets variables of an instance.
    from sagemaker_training.files import _safe_extractall

    archive = folder.parent / "archive.tar.gz"
    try:
        download(aws, region, *split_uri(uri), archive, NOT_FOUND)
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            _safe_extractall(tar, str(folder))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{uri} cannot be unpacked as a tar.gz archive: {error}") from error
    finally:
        archive.unlink(missing_ok=True)
