"""A request's body, read whole and bounded, and what it says as JSON."""

from __future__ import annotations

import json

from local_sagemaker.server.errors import AwsError

PIECE = 1024 * 1024
BAD_URI = "local_sagemaker.bad_uri"  # in environ: why the request's address is none


def whole_body(environ: dict, limit: int) -> bytes:
    """The whole body. It is read before the state's lock is taken: a slow client must not
    hold it. limit: bytes.

    Raises AwsError for one that is too long, shorter than its client said, too slow, or not in
    chunks although it says so; ConnectionError where the client is gone.
    """
    try:
        if environ.get("wsgi.input_terminated"):  # sent in chunks
            return _chunks(environ["wsgi.input"], limit)
        return _announced(environ, limit)
    except ConnectionError:
        raise
    except TimeoutError as error:
        raise AwsError("RequestTimeout", "The body did not come: nothing was sent.") from error
    except (OSError, ValueError) as error:  # what werkzeug raises for a wrong chunk
        raise AwsError("IncompleteBody", f"The body cannot be read: {error}") from error


def _announced(environ: dict, limit: int) -> bytes:
    said = environ.get("CONTENT_LENGTH") or "0"
    if not (said.isascii() and said.isdigit()):
        raise AwsError("InvalidRequest", f"Content-Length is no number: {said[:40]}")
    if len(said) > 18 or int(said) > limit:  # 10 ** 18 is above every limit
        raise _too_large(limit)
    length, pieces = int(said), []
    while length and (piece := environ["wsgi.input"].read(min(length, PIECE))):
        pieces.append(piece)
        length -= len(piece)
    if length:
        raise AwsError("IncompleteBody", f"The body ended {length} bytes early.")
    return b"".join(pieces)


def _chunks(stream, limit: int) -> bytes:
    pieces, length = [], 0
    while piece := stream.read(PIECE):
        length += len(piece)
        if length > limit:
            raise _too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _too_large(limit: int) -> AwsError:
    return AwsError("RequestEntityTooLarge", f"The request is over {limit} bytes.", 413)


def json_object(raw: bytes) -> dict:
    """The JSON object that `raw` holds. Raises AwsError (SerializationException) for another."""
    try:
        body = json.loads(raw or b"{}", parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise AwsError("SerializationException", f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise AwsError("SerializationException", "The body is not a JSON object.")
    return body


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON's")
