"""What to do when AWS cannot be asked: a sentence for each way in which that fails."""

from __future__ import annotations

from botocore import exceptions


def remedy(error: Exception) -> str:
    """What went wrong when somebody signed in to AWS, and what to do."""
    missing = (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)
    if isinstance(error, missing):
        return (
            f"AWS credentials are missing ({error}). Sign in with `aws configure` or `aws sso "
            'login`, or work without AWS: target="local".'
        )
    if isinstance(error, exceptions.ProfileNotFound):
        return f"{error}. Correct AWS_PROFILE; `aws configure list-profiles` shows what there is."
    code = error.response["Error"]["Code"] if isinstance(error, exceptions.ClientError) else ""
    if "Expired" in code or "SSO" in type(error).__name__ or "Token" in type(error).__name__:
        return f"Your AWS sign-in has expired ({error}). Sign in again, for example: aws sso login"
    if code in ("InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException"):
        return f"AWS does not know these credentials ({error}). Check them with `aws configure`."
    return f"AWS does not answer as expected: {error}"
