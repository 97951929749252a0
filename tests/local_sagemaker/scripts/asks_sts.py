"""As notebooks' first line, in a script: the SDK asks STS at an address of its own."""

import sagemaker

print("ROLE", sagemaker.Session(default_bucket="lessons-data").account_id())
