"""Start jobs with version 3 of the SDK, in its own environment; run.py runs this.

Reads JSON: "jobs", a list of {"code", "send"}; and "names", which recipes.py leaves to its reader.
Executes the code as it stands in the lessons, and prints a JSON line {"request", "status"} for each
job. One with send false is built and checked by botocore, not sent. Runs in notebooks/.
"""

import contextlib
import json
import runpy
import sys
import traceback

import boto3
from botocore.exceptions import WaiterError

WAIT = {"Delay": 1, "MaxAttempts": 900}
requests: list[dict] = []
sending = True


class NotSentError(Exception):
    """The request was to be built only."""


class KeepingSession(boto3.Session):
    """A session whose clients keep the requests for jobs."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        for kind in ("Training", "Transform"):
            self.events.register(f"before-call.sagemaker.Create{kind}Job", keep)


def keep(params: dict, **_) -> None:
    requests.append(json.loads(params["body"]))
    if not sending:
        raise NotSentError


def main() -> None:
    global sending
    boto3.Session = KeepingSession
    names = runpy.run_path("sdk_v3/recipes.py")
    given = json.load(sys.stdin)
    names.update(given["names"])
    for job in given["jobs"]:
        requests.clear()
        sending = job["send"]
        status = "Completed"
        try:
            exec(job["code"], names)
            if requests:
                status = ended(requests[0])
        except NotSentError:
            status = "not sent"
        except Exception as error:  # the other jobs are run all the same
            traceback.print_exc()
            status = type(error).__name__
        print(json.dumps({"request": (requests or [{}])[0], "status": status}), flush=True)


def ended(request: dict) -> str:
    """The status of a job that has ended."""
    kind = "Training" if "TrainingJobName" in request else "Transform"
    name, client = {f"{kind}JobName": request[f"{kind}JobName"]}, boto3.client("sagemaker")
    waiter = client.get_waiter(f"{kind.lower()}_job_completed_or_stopped")
    with contextlib.suppress(WaiterError):  # it failed
        waiter.wait(**name, WaiterConfig=WAIT)
    answer = getattr(client, f"describe_{kind.lower()}_job")(**name)
    if reason := answer.get("FailureReason"):
        print(f"{name}: {reason}", file=sys.stderr)
    return answer[f"{kind}JobStatus"]


if __name__ == "__main__":
    main()
