"""JSON, CSV and NPY <-> arrays, for the PyTorch image's default functions.

Which types are taken: src/sagemaker_inference/decoder.py and encoder.py of
https://github.com/aws/sagemaker-inference-toolkit, read 2026-11-21.
"""

from __future__ import annotations

import io
import json

from local_sagemaker.serving.runtime.messages import CSV, JSON, NPY, Refused

KNOWN = (JSON, CSV, NPY)
TEXT = (JSON, CSV)


def unsupported(kind: str | None) -> Refused:
    """415, for a type that the default functions know nothing of."""
    return Refused(
        415,
        f"Content type {kind} is not supported by the default functions: {', '.join(KNOWN)} are.",
    )


def decode(data: bytes | str, kind: str | None):
    """An array of a request's body. Raises Refused (415), or ValueError for what is not `kind`."""
    import numpy as np

    if kind == JSON:
        return np.array(json.loads(data))
    if kind == CSV:
        return np.genfromtxt(io.StringIO(data), delimiter=",")
    if kind == NPY:
        return np.load(io.BytesIO(data), allow_pickle=False)
    raise unsupported(kind)


def encode(values, accept: str) -> bytes:
    """An array, or nested lists, in the first type of `accept` that is known."""
    import numpy as np

    for kind in (one.strip() for one in accept.split(",")):
        if kind == JSON:
            return json.dumps(values, default=lambda one: one.tolist()).encode()
        if kind == CSV:
            text = io.StringIO()
            np.savetxt(text, np.asarray(values), delimiter=",", fmt="%s")
            return text.getvalue().encode()
        if kind == NPY:
            raw = io.BytesIO()
            np.save(raw, np.asarray(values), allow_pickle=False)
            return raw.getvalue()
    raise unsupported(accept)
