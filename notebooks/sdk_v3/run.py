"""`make sdk-v3`: run what the lessons show of version 3, in an environment of its own.

    make sdk-v3 ONLY="11 '10 elastic'"     # only these lessons' jobs, and this job

First the appendix's notebook, with version 3's Python as its kernel. Then the code of every lesson,
as it stands below its cells: start.py executes it there. A job that prints a hash of its weights is
run with version 2, too. What came out goes to results.md, the requests to requests.json. If the
emulator was down, it is down again afterwards.
Exit status 1: a cell or a job failed, or two weights differ.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import re
import subprocess
import sys

import numpy as np
from sagemaker.estimator import EstimatorBase

import data_prep
import workshop
from local_sagemaker import EmulatorError
from workshop.course import pages as page
from workshop.course import run as runner
from workshop.course.execute import NotebookFailed, execute
from workshop.course.lessons import chosen
from workshop.jobs import job_preview, local_server, sdk_v3, vpc
from workshop.jobs.follow import JobResult, watch
from workshop.jobs.lesson_jobs import LessonJob
from workshop.jobs.session import Session
from workshop.paths import BUILD, DATA, NOTEBOOKS, ROOT, SDK_V3

NOTEBOOK = SDK_V3 / "sdk_v3.ipynb"
ENVIRONMENT = BUILD / "sdk-v3"
KERNEL = "sdk-v3"
RESULTS = """# What came out

Written by `make sdk-v3` on {date}: the code that the lessons and the reference show, with sagemaker
{v3} on the emulator, and the same jobs with {v2}. *Weights* are the SHA-256 that the ranks print,
cut to 16 digits; empty where the script prints none. With parameter servers no two runs are equal,
so version 2 was not run.

| lesson | job | status | ranks | weights, version 3 | weights, version 2 | equal |
|---|---|---|---|---|---|---|
"""


def main(only: list[str]) -> int:
    """Run lesson 00, the notebook and all jobs, or only some lessons' jobs; write the results."""
    try:
        with local_server.up_for_now() as emulator:
            if not only and not runner.run(chosen(("00",)), BUILD / "before-sdk-v3", "local", {}):
                return 1
            local_server.point_here(emulator)
            try:
                return (0 if only else run_notebook()) or run_jobs(only)
            finally:
                local_server.point_back()
    except EmulatorError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted. `workshop jobs` lists what still runs.", file=sys.stderr)
        return 130


def run_notebook() -> int:
    """Run the notebook; 1 if a cell failed. The executed copy and its page go to build/."""
    copy, status = BUILD / NOTEBOOK.name, "failed"
    try:
        seconds = execute(NOTEBOOK, copy, {}, cell_seconds=900, kernel=KERNEL)
        status = "ok"
        print(f"{NOTEBOOK.stem}: ok, {seconds:.1f} s")
    except NotebookFailed as error:
        seconds = None
        print(f"FAILED: {error}", file=sys.stderr)
    if copy.exists():
        row = page.Row(NOTEBOOK.stem, status, seconds)
        print(f"Page: {page.write_html(copy, row, 'local', NOTEBOOK.parent)}")
    return int(status != "ok")


def run_jobs(only: list[str]) -> int:
    """Run the code of lessons, or of all and the reference; 1: a job failed or weights differ."""
    session = workshop.session()
    session.upload("digits", quiet=True)
    session.upload("digits-28", quiet=True)
    pictures = data_prep.cifar10.prepare_sample(DATA / "cifar10-sample", quiet=True)
    place = f"s3://{session.bucket}/data/{pictures.name}"
    data_prep.upload(pictures, place, client=session.client("s3"), quiet=True)
    upload_questions(session)
    delete_served(session)
    network, rows, requests, good = vpc.network(session), {}, {}, True
    code = {
        name: text
        for name, text in sdk_v3.shown().items()
        if not only or {name, name.split()[0]} & set(only)
    }
    for name, answer in start(code, network).items():
        lesson, _, short = name.partition(" ")
        job = sdk_v3.jobs(lesson).get(short)
        if job:
            requests[name] = sdk_v3.comparable(answer["request"])
        if answer["status"] == "not sent":
            continue
        cells = [""] * 4
        if job and answer["status"] == "Completed":
            cells = weights(job, answer["request"]["TrainingJobName"], session, network)
        rows[name] = f"| {lesson} | {short} | {' | '.join([answer['status'], *cells])} |"
        print(rows[name], flush=True)
        good &= answer["status"] == "Completed" and cells[-1] != "no"
    delete_served(session)
    record(rows, requests)
    return int(not good)


def delete_served(session: Session) -> None:
    """Delete the endpoint and the models of lesson 08's code, of this run or an earlier one."""
    client, names = session.client("sagemaker"), {"NameContains": f"{session.job_prefix}v3"}
    for endpoint in client.list_endpoints(**names)["Endpoints"]:
        client.delete_endpoint(EndpointName=endpoint["EndpointName"])
    for config in client.list_endpoint_configs(**names)["EndpointConfigs"]:
        client.delete_endpoint_config(EndpointConfigName=config["EndpointConfigName"])
    for model in client.list_models(**names)["Models"]:
        client.delete_model(ModelName=model["ModelName"])


def upload_questions(session: Session) -> None:
    """What lesson 08's batch transforms answer: the test images as JSON lines and as CSV."""
    with np.load(next((DATA / "digits" / "test").glob("*.npz"))) as file:
        images = file["images"]
    folder = f"jobs/{session.job_prefix}questions"
    texts = {
        "json/test.jsonl": "\n".join(json.dumps({"images": image.tolist()}) for image in images),
        "csv/test.csv": "\n".join(",".join(map(str, image.ravel())) for image in images),
    }
    for name, text in texts.items():
        session.client("s3").put_object(Bucket=session.bucket, Key=f"{folder}/{name}", Body=text)


def start(code: dict[str, str], network: dict) -> dict[str, dict]:
    """What start.py answered about each job, once all have ended."""
    gpus = sdk_v3.GPUS["instance_type"]
    jobs = [{"code": text, "send": gpus not in text} for text in code.values()]
    command = [str(ENVIRONMENT / "bin" / "python"), "sdk_v3/start.py"]
    given = json.dumps({"names": network, "jobs": jobs})
    done = subprocess.run(
        command, input=given, stdout=subprocess.PIPE, text=True, check=True, cwd=NOTEBOOKS
    )
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"request"')]
    return dict(zip(code, map(json.loads, answers), strict=True))


def weights(job: LessonJob, name: str, session: Session, network: dict) -> list[str]:
    """Ranks and weights of a job of version 3, the weights with version 2, whether they are equal.

    Version 2 runs the job only if its script prints a hash of weights, and two runs give the same.
    """
    result = watch(name, lambda _: None, session)
    ranks = max((str(event.get("world_size", "")) for event in result.events), default="")
    first = hashes(result)
    if not first or "parameter_server" in job.distribution:
        return [ranks, ", ".join(first), "", ""]
    estimator = job_preview.estimator(job, session, network)
    EstimatorBase.fit.__wrapped__(estimator, job_preview.channels(job, session), wait=False)
    second = hashes(watch(estimator, lambda _: None))
    return [ranks, ", ".join(first), ", ".join(second), "yes" if first == second else "no"]


def hashes(result: JobResult) -> list[str]:
    """The different hashes of weights that the ranks of a job printed, shortened."""
    return sorted({e["weights_sha256"][:16] for e in result.events if e["event"] == "weights"})


def record(rows: dict[str, str], requests: dict[str, dict]) -> None:
    """Write results.md and requests.json; what was not run this time stays."""
    results, recording = SDK_V3 / "results.md", SDK_V3 / "requests.json"
    for row in re.finditer(r"^\| (\d\d|reference) \| (.+?) \|.*", results.read_text(), re.M):
        rows.setdefault(f"{row[1]} {row[2]}", row[0])
    requests = json.loads(recording.read_text())["requests"] | requests
    date = datetime.date.today()
    v2, v3 = importlib.metadata.version("sagemaker"), version_3()
    table = [rows[name] for name in sdk_v3.shown() if name in rows]
    results.write_text(RESULTS.format(v3=v3, v2=v2, date=date) + "\n".join(table) + "\n")
    lines = [
        f"{json.dumps(name)}: {json.dumps(requests[name])}"
        for name in sdk_v3.shown()
        if name in requests
    ]
    about = f'"date": "{date}", "sagemaker": "{v3}"'
    recording.write_text(f'{{{about}, "requests": {{\n' + ",\n".join(lines) + "\n}}\n")


def version_3() -> str:
    """The version of sagemaker in version 3's environment."""
    ask = "import importlib.metadata as m; print(m.version('sagemaker'))"
    python = [str(ENVIRONMENT / "bin" / "python"), "-c", ask]
    return subprocess.run(python, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
