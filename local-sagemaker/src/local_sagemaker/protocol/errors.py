"""Errors in the shape that AWS's JSON services give them."""

from __future__ import annotations

import errno


class AwsError(Exception):
    """An error that the client sees: AWS's code, a message, an HTTP status.

    codes: protocol -> the code there, where protocols call the same thing by several names.
    """

    def __init__(
        self, code: str, message: str, status: int = 400, codes: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status
        self.codes = codes or {}


def validation(message: str) -> AwsError:
    return AwsError("ValidationException", message)


def not_offered(feature: str, instead: str) -> AwsError:
    return validation(f"{feature}: the emulator does not offer that; {instead}.")


def unknown_operation(name: str) -> AwsError:
    return AwsError("UnknownOperationException", f"The emulator does not offer this: {name}")


def other_body() -> AwsError:
    return AwsError(
        "XAmzContentSHA256Mismatch",
        "The provided 'x-amz-content-sha256' header does not match what was computed.",
    )


NOT_FOUND = "Requested resource not found."

# 507 and not 500: clients try a 500 again for seconds, and a disk stays full.
TROUBLES = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota on the disk is used up",
    errno.EROFS: "the disk is read-only",
    errno.EFBIG: "a file would be larger than this process may write (`ulimit -f`)",
}


def disk_trouble(error: Exception) -> AwsError | None:
    """The error for a full or read-only disk; None for other errors."""
    if not isinstance(error, OSError) or error.errno not in TROUBLES:
        return None
    reason = TROUBLES[error.errno]
    where = f" ({error.filename})" if error.filename else ""
    return AwsError(
        "InsufficientStorage",
        f"The emulator cannot write: {reason}{where}. What it had before is kept. Free some "
        "space and try again; `local-sagemaker status` names the state directory.",
        507,
    )
