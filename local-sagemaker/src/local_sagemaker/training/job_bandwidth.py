"""The bandwidth that a job asks for, by a variable of its Environment."""

from __future__ import annotations

from local_sagemaker.cluster.bandwidth import Bandwidth, parse
from local_sagemaker.protocol.errors import validation

VARIABLE = "LOCAL_SAGEMAKER_BANDWIDTH"


def bandwidth_for_job(request: dict) -> Bandwidth | None:
    """The bandwidth of the job that `request` describes; None if it is unlimited.

    Raises AwsError (ValidationException) if what the job asks for is malformed.
    """
    words = request.get("Environment", {}).get(VARIABLE)
    if words is None:
        return None
    try:
        bandwidth = parse(words)
    except ValueError as error:
        raise validation(f"Environment's {VARIABLE}: {error}") from error
    return bandwidth if request["ResourceConfig"]["InstanceCount"] > 1 else None
