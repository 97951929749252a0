#!/bin/sh
# Build the image of this folder and push it to a private registry of your own account.
set -eu

usage() {
    cat <<'USAGE'
Usage: build_and_push.sh [--seat NAME] [--region REGION] [--gpu] [--dry-run]

Builds Horovod 0.28.1 on AWS's TensorFlow 2.18.0 training image, and pushes it to the repository
workshop-SEAT-horovod of your account, which is made if it is missing. Needs docker, the AWS CLI
(version 2) and credentials. Run it on x86-64.

  --seat NAME      whose image it is (default: me)
  --region REGION  default: what AWS_REGION, AWS_DEFAULT_REGION or `aws configure` say
  --gpu            on the image for GPUs, with NCCL
  --dry-run        print the commands, run none, ask AWS nothing

The registry bills the image by size and month. To remove it:
  aws ecr delete-repository --repository-name workshop-SEAT-horovod --force
USAGE
}

fail() {
    echo "build_and_push.sh: $1" >&2
    exit 2
}

seat=me region=${AWS_REGION:-${AWS_DEFAULT_REGION:-}} instance=ml.c5.xlarge operations="" dry=""
while [ $# -gt 0 ]; do
    case $1 in
        --seat | --region)
            [ $# -ge 2 ] || fail "$1 needs a value. See --help."
            if [ "$1" = --seat ]; then seat=$2; else region=$2; fi
            shift
            ;;
        --gpu) instance=ml.g5.xlarge operations=NCCL ;;
        --dry-run) dry=yes ;;
        -h | --help)
            usage
            exit 0
            ;;
        *) fail "unknown option $1. See --help." ;;
    esac
    shift
done
printf %s "$seat" | grep -Eq '^[a-z0-9]{1,16}$' ||
    fail "--seat is '$seat'; it must be 1 to 16 small letters or digits."

kit=$(cd "$(dirname "$0")/../.." && pwd)
python=$kit/.venv/bin/python
[ -x "$python" ] || fail "the kit is not set up. Run: make setup"
if [ -z "$dry" ]; then
    for program in docker aws; do
        command -v "$program" >/dev/null || fail "$program is not installed."
    done
    [ -n "$region" ] || region=$(aws configure get region) ||
        fail "no region is set. Give one: --region us-east-1"
    account=$(aws sts get-caller-identity --query Account --output text) ||
        fail "AWS does not know you. Sign in: aws configure, or aws sso login"
fi
[ -n "$region" ] || fail "no region is set. Give one: --region us-east-1"

repository=workshop-$seat-horovod
base=$("$python" -W ignore - "$region" "$instance" <<'ASK'
import logging, os, sys
os.environ["SAGEMAKER_SUPPRESS_V2_WARNING"] = "1"
logging.disable()
from sagemaker import image_uris
region, instance = sys.argv[1:]
try:
    print(image_uris.retrieve("tensorflow", region, version="2.18.0", py_version="py310",
                              instance_type=instance, image_scope="training"))
except ValueError as error:
    sys.exit(str(error))
ASK
) || fail "the SDK knows no TensorFlow image in the region $region."
their_registry=${base%%/*}
# The same end of the address as theirs, with your account: amazonaws.com, or .cn in China.
our_registry=${account:-YOUR-ACCOUNT}.${their_registry#*.}
image=$our_registry/$repository:tf2.18.0-horovod0.28.1

run() {
    echo "$ $*"
    [ -n "$dry" ] || "$@"
}

sign_in() {
    echo "$ aws ecr get-login-password --region $region | docker login -u AWS --password-stdin $1"
    [ -n "$dry" ] ||
        aws ecr get-login-password --region "$region" |
        docker login --username AWS --password-stdin "$1"
}

sign_in "$their_registry"
run docker build --platform linux/amd64 --build-arg "BASE_IMAGE=$base" \
    --build-arg "HOROVOD_GPU_OPERATIONS=$operations" \
    --tag "$image" --file "$kit/cloudformation/image/Dockerfile" "$kit/tools/requirements"
if [ -n "$dry" ] ||
    ! aws ecr describe-repositories --region "$region" --repository-names "$repository" \
        >/dev/null 2>&1; then
    run aws ecr create-repository --region "$region" --repository-name "$repository" \
        --image-scanning-configuration scanOnPush=true \
        --tags Key=workshop,Value=data-parallel "Key=seat,Value=$seat"
fi
sign_in "$our_registry"
run docker push "$image"
echo "Give it to an estimator in place of framework_version and py_version: image_uri=\"$image\""
