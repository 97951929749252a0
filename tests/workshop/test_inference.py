"""A model that is asked without a server."""

import io
import tarfile

import numpy as np
import pytest

from workshop.jobs import inference
from workshop.jobs.inference import InferenceFailed


class OneFile:
    """A session whose S3 holds one file."""

    def __init__(self, content: bytes):
        self.content = content

    def client(self, service):
        return self

    def download_file(self, bucket, key, path):
        with open(path, "wb") as stream:
            stream.write(self.content)


def packed(names: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def test_a_file_without_a_model_is_named():
    session = OneFile(packed({"model.pt": b"torch"}))
    with pytest.raises(InferenceFailed, match="error: the file holds no SavedModel"):
        inference.infer("s3://b/m.tar.gz", np.zeros((1, 8, 8, 1)), session)
