"""Errors in the shape that AWS's JSON services give them."""

from __future__ import annotations


class AwsError(Exception):
    """An error that the client sees: AWS's code, a message, an HTTP status."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def validation(message: str) -> AwsError:
    return AwsError("ValidationException", message)


def unknown_operation(what: str) -> AwsError:
    return AwsError("UnknownOperationException", f"The local endpoint does not offer this: {what}")


NOT_FOUND = "Requested resource not found."
