"""As the script-mode samples of TensorFlow with model_dir in S3, and a Session in the job.

At last it does what is a notebook's first line: the SDK asks STS, at an address of its own.
"""

import argparse
import os

import boto3
import sagemaker

parser = argparse.ArgumentParser()
parser.add_argument("--model_dir", type=str)
args, _ = parser.parse_known_args()
session = sagemaker.Session(boto3.session.Session(region_name=os.environ["AWS_REGION"]))
with open("weights.txt", "w") as stream:
    stream.write("0.5")
bucket, prefix = args.model_dir.removeprefix("s3://").split("/", 1)
print("PUT", session.upload_data("weights.txt", bucket=bucket, key_prefix=prefix), flush=True)
job = session.describe_training_job(os.environ["TRAINING_JOB_NAME"])
print("TELLS", job["TrainingJobStatus"], flush=True)
logs = os.path.join("/opt/ml/output/tensorboard", "events.out.tfevents.1")
os.makedirs(os.path.dirname(logs), exist_ok=True)
with open(logs, "w") as stream:
    stream.write("event")
print("KEYS", os.environ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"], flush=True)
print("ROLE", sagemaker.get_execution_role(session), session.default_bucket(), flush=True)
print("ACCOUNT", session.account_id())
