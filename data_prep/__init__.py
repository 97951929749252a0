"""Data sets for the workshop: fetch, verify, convert, upload.

    import data_prep

    folder = data_prep.digits.prepare()                 # offline, real handwritten digits
    folder = data_prep.mnist.prepare("data/mnist")      # checked download, or source="..."
    folder = data_prep.cifar10.prepare("data/cifar10")  # TFRecord channels
    data_prep.upload(folder, "s3://BUCKET/PREFIX")

The same from a shell: `python -m data_prep --help`.
"""

from data_prep import cifar10, digits, mnist
from data_prep.channels import DataError
from data_prep.s3 import UploadResult, upload

__all__ = ["DataError", "UploadResult", "cifar10", "digits", "mnist", "upload"]
