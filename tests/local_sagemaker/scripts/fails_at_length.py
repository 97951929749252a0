"""Fails, and leaves a failure file of 2 GB that takes no room on the disk."""

import os

path = os.path.join(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "output", "failure")
with open(path, "wb") as stream:
    stream.write(b"the beginning")
    stream.seek(2 * 1024**3)
    stream.write(b"the end")
os._exit(3)
