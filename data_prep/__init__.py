"""Data sets for the workshop: fetch, verify, convert, upload.

    import data_prep

    folder = data_prep.digits.prepare()                 # offline, real handwritten digits
    folder = data_prep.cifar10.prepare("data/cifar10")  # checked download, or source="..."
    data_prep.upload(folder, "s3://BUCKET/PREFIX", client=boto3.client("s3"))

The data sets from a shell: `python -m data_prep --help`.
"""

from data_prep import cifar10, digits
from data_prep.channels import DataError
from data_prep.s3 import upload

__all__ = ["DataError", "cifar10", "digits", "upload"]
