"""Uses AWS as a training script may: S3 and STS, through the instance's own variables."""

import os
import socket

import boto3

print("REGION", os.environ["AWS_REGION"])
boto3.client("s3").put_object(Bucket="lessons-data", Key="phoned", Body=b"home")
print("ACCOUNT", boto3.client("sts").get_caller_identity()["Account"])
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
    print("REACHED", "the internet")
except OSError as error:
    print("REFUSED", error)
