"""Is the image in its registry? ECR knows, if it may be asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

from botocore.exceptions import ClientError

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.finding import Finding, bad, unknown
from workshop.preflight.rules.images import image

WHAT = "image"
# account.dkr.ecr.region.domain/repository:tag, or @digest in the place of the tag
ADDRESS = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z.]+/"
    r"(?P<repository>[a-z0-9._/-]+)(?::(?P<tag>[\w.-]+)|@(?P<digest>sha256:[0-9a-f]{64}))"
)


def check_image(job: JobConfiguration, session) -> Iterator[Finding]:
    """Whether the job's image exists. AWS's own registries may refuse to say."""
    if session.target == "local" and not job.image_uri:
        yield unknown(WHAT, "the local endpoint pulls no image, and so knows of none of AWS's.")
        return
    try:
        address = image(job)
    except ValueError:
        return  # there is a finding about that already
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        yield unknown(WHAT, f"{address} is not an address in ECR.")
        return
    which = {"imageTag": parts["tag"]} if parts["tag"] else {"imageDigest": parts["digest"]}
    try:
        session.boto_session.client("ecr", region_name=parts["region"]).describe_images(
            registryId=parts["account"], repositoryName=parts["repository"], imageIds=[which]
        )
    except ClientError as error:
        if error.response["Error"]["Code"] not in (
            "RepositoryNotFoundException",
            "ImageNotFoundException",
        ):
            raise
        yield bad(
            WHAT,
            f"ECR has no {address} ({error.response['Error']['Code']}).",
            "Check name and tag; build and push an image of your own first.",
        )
        return
    yield Finding(WHAT, True, f"{address} is in its registry.")
