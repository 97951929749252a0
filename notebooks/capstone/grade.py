"""Grade the capstone: python notebooks/capstone/grade.py [TASK ...]

Tasks: 1 repair, 2 jobs, 3 resume, 4 choose, 5 explain, 6 clean up. Each lost point is explained.
points.json beside this file keeps them: clean up after grading 2 and 3, whose points then stay.
Exit status: 0 no point that a program can give is lost in the graded tasks, 1 some, 2 wrong use.
"""

import argparse
import hashlib
import io
import json
import re
import secrets
import statistics
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import torch

import workshop
from workshop.account import cleanup
from workshop.jobs.follow import watch
from workshop.launch.processes import TORCHRUN, Processes, ProcessFailed

HERE = Path(__file__).resolve().parent
MANY, ALONE, POINTS = HERE / "train_many.py", HERE / "train_alone.py", HERE / "points.json"
ALONE_SHA256 = "1e55812b3e441c4580014cfda43893ea95aa3fce8cca12636c4dffd0f50c77e4"
ROUNDING = 1e-5  # largest difference of a weight, of about 1, after a few steps
ROUNDING_OF_JOBS = 1e-4  # the same after a whole job
GLOBAL_BATCH, STEPS, EPOCHS = 48, 4, 2
LAST_STEP = STEPS * EPOCHS - 1  # in which traced.py changes the images of the last rank
TIMEOUT = 400  # seconds of one training, on a machine that others use, too
MIN_EPOCHS = 20  # below that no median
HOURS = {  # of the training in task 4, by instance type and count; invented, as README.md says
    "ml.c5.xlarge": {1: 10.0, 2: 5.6, 4: 3.4, 8: 2.4},
    "ml.c5.2xlarge": {1: 5.2, 2: 2.9, 4: 1.8},
    "ml.c5.4xlarge": {1: 3.1, 2: 1.75},
    "ml.g4dn.xlarge": {1: 3.3, 2: 2.6},
}
DEADLINE_HOURS, BUDGET_USD = 3.0, 2.50
WORDS = range(120, 181)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Refused(Exception):
    """A task that can't be graded; the message says why and what to do."""


def run_traced(folder, script, ranks, epochs, data, checkpoints=""):
    """Train with a seed that nobody knew before; return each rank's trace and the saved model."""
    folder.mkdir()
    command = [HERE / "traced.py", folder, LAST_STEP, script, "--seed", data.name]
    command += ["--epochs", epochs, "--global-batch-size", GLOBAL_BATCH, "--save-to", folder / "m"]
    command += ["--training", data / "training", "--test", data / "test"]
    command += ["--checkpoints", checkpoints]
    torchrun = [*TORCHRUN, "--standalone", "--nproc_per_node", ranks]
    where = f"{script.name} with {folder.name}"
    print(f"   {where} ...", flush=True)
    with Processes([[*(torchrun if script == MANY else [sys.executable]), *command]]) as processes:
        try:
            processes.wait(TIMEOUT)
        except ProcessFailed:
            if processes.failed is None:
                late = (
                    f"{where} had not ended after {TIMEOUT} s: does each rank call each "
                    "collective? (Or is the machine busy?)"
                )
                raise Refused(late) from None
    paths = [folder / f"rank-{rank}.pt" for rank in range(ranks)]
    if processes.failed is not None or not all(path.exists() for path in paths):
        printed = [line.text for line in processes.lines] or ["?"]
        errors = [line for line in printed if re.match(r"(\[rank\d\]: )?\w+(\.\w+)*Error", line)]
        errors.sort(key=lambda line: "Connection closed" in line)  # what another rank did to it
        raise Refused(f"{where} failed: {(errors or printed)[0]}")
    model = folder / "m" / "model.pt"
    saved = torch.load(model, weights_only=True) if model.exists() else None
    return [torch.load(path, weights_only=False) for path in paths], saved


def make_data(folder):
    """Random images, so that no result can be known before. The folder's name is the seed."""
    random = np.random.default_rng(int(folder.name))
    for channel, count in (("training", GLOBAL_BATCH * STEPS + 10), ("test", GLOBAL_BATCH * STEPS)):
        images = random.integers(0, 256, (count, 8, 8, 1), dtype=np.uint8)
        (folder / channel).mkdir(parents=True)
        labels = random.integers(0, 10, count)
        np.savez(folder / channel / "part-0.npz", images=images, labels=labels)


def apart(a, b):
    return (a - b).abs().max().item()


def not_one_training(ranks, alone):
    """Why these ranks did not train together at all, or None."""
    for rank, trace in enumerate(ranks):
        images = len(trace["images"][0]) if trace["images"] else 0
        if images in (0, GLOBAL_BATCH):
            share = "no image" if images == 0 else "the whole batch"
            return f"rank {rank} trained {share}: each must train its part of each batch"
    updates = [trace["weights"][0] - trace["start"] for trace in ranks]
    if any(apart(update, updates[0]) > ROUNDING for update in updates):
        return "the ranks' first updates differ: average the gradients before each optimizer.step()"
    if apart(ranks[0]["weights"][-1], alone["weights"][-1]) <= ROUNDING:
        return f"rank {len(ranks) - 1} got other images in the last step, and rank 0 never noticed"
    return None


def differs_from_alone(ranks, saved, alone):
    """Where these ranks leave the training of one process, or None."""
    steps, expected = [len(trace["weights"]) for trace in ranks], len(alone["weights"])
    if set(steps) != {expected}:
        return f"they took {steps} steps, one process took {expected}"
    for step in range(len(ranks[0]["weights"])):
        seen = sorted(image for trace in ranks for image in trace["images"][step])
        if seen != sorted(alone["images"][step]):
            return f"in step {step + 1} they see other images together than one process"
        for rank, trace in enumerate(ranks if step < LAST_STEP else []):
            if (gap := apart(trace["weights"][step], alone["weights"][step])) > ROUNDING:
                return f"after step {step + 1} rank {rank} is {gap:.0e} from one process's weights"
    if saved is None:
        return "nobody saved model.pt"
    weights = torch.cat([value.reshape(-1).double() for value in saved.values()])
    gap = apart(weights, ranks[0]["weights"][-1])
    return f"model.pt is {gap:.0e} from the weights that were trained" if gap else None


def faults(ranks, again, alone):
    """For each planted fault what was seen of it, or something false."""
    steps = list(zip(*(trace["images"] for trace in ranks), strict=False))
    per_epoch = len(steps) // EPOCHS
    known = {image for step in alone["images"] for image in step}
    every = [image for images in steps for part in images for image in part]
    strange = sum(image not in known for image in every)
    different, sizes = min((len(set().union(*parts)), sorted(map(len, parts))) for parts in steps)
    shared = different < GLOBAL_BATCH or sizes[0] < sizes[-1]
    same = all(trace["images"][:per_epoch] == trace["images"][per_epoch:] for trace in ranks)
    gap = max(apart(trace["start"], ranks[0]["start"]) for trace in ranks)
    savers = [rank for rank, trace in enumerate(ranks) if trace["saves"]]
    return [
        strange > len(every) / 2
        and f"{strange} of the {len(every)} images are none that one process trains on",
        shared and f"in a step the ranks saw {sizes} images, only {different} different ones",
        same and "each rank saw the same images in the same order in both epochs",
        gap and f"before the first step the ranks' weights were {gap:.0e} apart",
        savers != [0] and f"ranks {savers} wrote files",
        resume_fault(ranks, again),
    ]


def resume_fault(ranks, again):
    if isinstance(again, str):
        return f"the second start failed: {again}"
    steps, expected = len(again[0]["weights"]), len(ranks[0]["weights"]) // EPOCHS
    if steps != expected:
        return f"for one more epoch the second start took {steps} steps, not {expected}"
    for rank, (before, after) in enumerate(zip(ranks, again, strict=True)):
        ended, resumed = before["momentum"]["end"], after["momentum"]["start"]
        if resumed is None or apart(ended, resumed) > ROUNDING:
            return f"rank {rank}'s momentum at the second start isn't that of the first one's end"
    gap = apart(ranks[0]["weights"][-1], again[0]["start"])
    return f"at the second start rank 0 is {gap:.0e} from the weights it had" if gap else None


def repair(_):
    """Task 1: 2 for each fault, 4 for 2 ranks and 4 for 3 that train as one process does."""
    if sha256(ALONE) != ALONE_SHA256:
        raise Refused(f"train_alone.py was changed: get it back: git checkout {ALONE}")
    try:
        compile(MANY.read_text(encoding="utf-8"), MANY.name, "exec")
    except SyntaxError as error:
        raise Refused(f"{MANY.name}, line {error.lineno}: {error.msg}") from None
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / str(secrets.randbelow(10**6))
        make_data(data)
        (alone,), _ = run_traced(folder / "1 process", ALONE, 1, EPOCHS, data)
        saved_in = folder / "checkpoints"
        two, saved = run_traced(folder / "2 ranks", MANY, 2, EPOCHS, data, saved_in)
        if reason := not_one_training(two, alone):
            raise Refused(reason)
        try:
            again, _ = run_traced(
                folder / "2 ranks, started again", MANY, 2, EPOCHS + 1, data, saved_in
            )
        except Refused as error:
            again = str(error)
        for fault in faults(two, again, alone):
            yield 2, fault
        reason = differs_from_alone(two, saved, alone)
        yield 4, reason and f"2 ranks: {reason}"
        try:
            three, saved = run_traced(folder / "3 ranks", MANY, 3, EPOCHS, data)
            reason = not_one_training(three, alone) or differs_from_alone(three, saved, alone)
        except Refused as error:
            reason = str(error)
        yield 4, reason and f"3 ranks: {reason}"


def newest_jobs(session):
    """The seat's completed capstone jobs: "alone", "2 x 1", "1 x 2", "spot" -> the newest."""
    client, jobs = session.client("sagemaker"), {}
    pages = client.get_paginator("list_training_jobs").paginate(
        NameContains=f"{session.job_prefix}capstone", SortBy="CreationTime", SortOrder="Descending"
    )
    for summary in (summary for page in pages for summary in page["TrainingJobSummaries"]):
        if summary["TrainingJobStatus"] == "Completed":
            job = watch(summary["TrainingJobName"], lambda _: None, session)
            ranks = len({event["rank"] for event in job.events if event["event"] == "start"})
            kind = f"{job.instance_count} x {ranks // job.instance_count}"
            kind = "alone" if job.hyperparameters["sagemaker_program"] == "train_alone.py" else kind
            kind = "spot" if job.description.get("EnableManagedSpotTraining") else kind
            jobs.setdefault(kind, job)
    return jobs


def files_of(session, address):
    """name -> bytes of the files in a .tar.gz in S3."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    packed = io.BytesIO(session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    with tarfile.open(fileobj=packed) as archive:
        members = [member for member in archive if member.isfile()]
        return {Path(each.name).name: archive.extractfile(each).read() for each in members}


def weights_of(session, job):
    model = io.BytesIO(files_of(session, job.model)["model.pt"])
    values = torch.load(model, weights_only=True).values()
    return torch.cat([value.reshape(-1).double() for value in values])


def wrong_job(session, kind, jobs):
    """What is wrong with a job, but for its weights; None if nothing is."""
    if kind not in jobs:
        return f"no completed job {kind} named capstone-...; there is: {', '.join(jobs) or 'none'}"
    job = jobs[kind]
    code = files_of(session, job.hyperparameters["sagemaker_submit_directory"])
    for script in (ALONE,) if kind == "alone" else (ALONE, MANY):
        if code.get(script.name) != script.read_bytes():
            return f"{job.name} ran another {script.name} than the present one: run it again"
    names = [name for name in job.hyperparameters if not name.startswith("sagemaker_")]
    if names:
        return f"{job.name} had hyperparameters: {', '.join(names)}; run it without any"
    epochs = len({event["step"] for event in job.events if event["event"] == "epoch"})
    if epochs < MIN_EPOCHS:
        return f"{job.name} reported {epochs} epochs, too few: change no setting"
    return None


def check_seat(arguments):
    if (seat := arguments.points.get("seat", arguments.seat)) != arguments.seat:
        raise Refused(f"jobs of seat {seat} have been graded: use --seat {seat}")


def opened(arguments):
    """The session and the jobs to grade. Raises Refused before task 1 has a point."""
    if arguments.points.get("trained_together") != sha256(MANY):
        raise Refused("this train_many.py has no points in task 1, or was edited since: grade 1")
    check_seat(arguments)
    session = workshop.session(target="local", seat=arguments.seat)
    if jobs := newest_jobs(session):
        names = {kind: job.name for kind, job in jobs.items()}
        arguments.points.update(seat=arguments.seat, jobs=names)
    return session, jobs


def run_jobs(arguments):
    """Task 2: 4 for the job alone, 8 for each of the others. Prints medians with ranges."""
    session, jobs = opened(arguments)
    medians = arguments.points["medians"] = {}
    for kind, points in (("alone", 4), ("2 x 1", 8), ("1 x 2", 8)):
        reason = wrong_job(session, kind, jobs)
        if not reason:
            epochs = [event for event in jobs[kind].events if event["event"] == "epoch"]
            times = [1000 * event["seconds"] for event in epochs][1:]  # the first warms up
            medians[kind] = statistics.median(times)
            spread = f"{min(times):.1f} to {max(times):.1f}"
            print(f"   {kind}: {medians[kind]:.1f} ms an epoch, {spread}, {len(times)} epochs")
            if not wrong_job(session, "alone", jobs):
                gap = apart(weights_of(session, jobs[kind]), weights_of(session, jobs["alone"]))
                if gap > ROUNDING_OF_JOBS:
                    reason = f"{kind}: its weights are {gap:.0e} from those of the job alone"
        yield points, reason


def restart_fault(events):
    """Why these records are not those of a job that resumed after a checkpoint, or None."""
    per_epoch = next(event["step"] for event in events if event["event"] == "epoch")
    first, latest = None, 0
    for event in events:
        if event["event"] == "start" and event["rank"] == 0:  # as the epochs: in their order
            first = event["epoch"]
            latest = max(latest, first)
        elif event["event"] == "epoch":
            if first is not None and event["step"] != per_epoch * (first + 1):
                return f"started at epoch {first}, it says, and went on with step {event['step']}"
            first = None
    return None if latest else "began again at epoch 0: interrupt it after its first checkpoint"


def resume(arguments):
    """Task 3: 10 for an interrupted job that resumed, 10 for the weights of the undisturbed one."""
    session, jobs = opened(arguments)
    if reason := wrong_job(session, "spot", jobs) or wrong_job(session, "1 x 2", jobs):
        raise Refused(reason)
    spot = jobs["spot"]
    statuses = [each["Status"] for each in spot.description["SecondaryStatusTransitions"]]
    wrong = "was never interrupted" if "Interrupted" not in statuses else restart_fault(spot.events)
    wrong = wrong if spot.instance_count == 1 else "took several instances: run it on 1 x 2"
    reason = wrong and f"{spot.name} {wrong}"
    yield 10, reason
    gap = apart(weights_of(session, spot), weights_of(session, jobs["1 x 2"]))
    different = f"{spot.name} ended {gap:.0e} from the undisturbed 1 x 2: not equal to the last bit"
    yield 10, reason or (different if gap else None)


def answer(name):
    """What stands behind NAME: in report.md, without backticks; it may be nothing."""
    text = (HERE / "report.md").read_text(encoding="utf-8")
    match = re.search(rf"^{name}:[ \t]*(.*)$", text, re.MULTILINE)
    return match[1].replace("`", "").strip() if match else ""


def choose(_):
    """Task 4: 6 for the choice, 4 for what it costs."""
    kind, sign = r"(ml\.\w+\.\w+)", r"\s*[x×]\s*"
    choice = re.fullmatch(rf"(\d+){sign}{kind}|{kind}{sign}(\d+)", answer("Choice"))
    parts = sorted(filter(None, choice.groups())) if choice else ["0", ""]  # digits come first
    count, kind = int(parts[0]), parts[1]
    if not (hours := HOURS.get(kind, {}).get(count)):
        raise Refused("report.md: write Choice: COUNT x TYPE, with hours in README.md's table")
    usd = workshop.cost(kind, count, 3600 * hours).usd
    reason = f"{hours} h is later than {DEADLINE_HOURS} h" if hours > DEADLINE_HOURS else None
    reason = reason or (f"{usd:.2f} USD is over the budget" if usd > BUDGET_USD else None)
    yield 6, reason and f"{count} x {kind}: {reason}"
    given = answer("USD").replace("USD", "").strip(" $")
    right = re.fullmatch(r"\d+(\.\d+)?", given) and abs(float(given) - usd) <= 0.01
    rule = "count x hours x USD an hour of one instance, to the cent, such as 12.34"
    wrong = f"{count} x {kind} does not cost {given or 'nothing'} USD: {rule}"
    yield 4, None if right else wrong


def explain(arguments):
    """Task 5: 4 for the length, 4 for your own medians; the teacher gives up to 12 more."""
    text = (HERE / "report.md").read_text(encoding="utf-8").partition("## Why not 2 times")[2]
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    words = len(text.split())
    yield 4, None if words in WORDS else f"{words} words: write 120 to 180"
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)  # 1,216.9
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    medians = arguments.points.get("medians", {})
    missing = [
        f"{kind} {median:.1f} ms"
        for kind, median in medians.items()
        if not any(abs(number - median) <= 0.02 * median for number in numbers)
    ]
    lost = f"name your own medians, which lack: {', '.join(missing)}" if missing else None
    yield 4, lost if len(medians) == 3 else "there are no three medians yet: grade 2"


def clean_up(arguments):
    """Task 6: 10 if nothing of the graded seat is left."""
    if not arguments.points.get("2", {}).get("points"):
        raise Refused("grade 2 and 3 before you clean up: the jobs are their proof")
    check_seat(arguments)
    session = workshop.session(target="local", seat=arguments.seat)
    report = cleanup.Report(left=cleanup.find(session))
    left = f"{report.left.count} things are left: workshop clean --seat {arguments.seat}"
    yield 10, None if report.nothing_left else left


TASKS = {1: repair, 2: run_jobs, 3: resume, 4: choose, 5: explain, 6: clean_up}
MAX_POINTS = {1: 20, 2: 20, 3: 20, 4: 10, 5: 8, 6: 10}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", type=int, metavar="TASK")
    parser.add_argument("--seat", default="me")
    arguments = parser.parse_args()
    if set(arguments.tasks) - set(TASKS):
        parser.error("tasks are numbers from 1 to 6")
    points = arguments.points = json.loads(POINTS.read_text()) if POINTS.exists() else {}
    for task in arguments.tasks or TASKS:
        print(f"{task} {TASKS[task].__name__.replace('_', ' ')}", flush=True)
        if task in (2, 3) and points.get("6", {}).get("points") and str(task) in points:
            stay = points[str(task)]["points"]
            print(f"   {stay} of 20 kept from before the clean-up. For newer jobs grade 6, which")
            print("   then finds them, and this task after it.")
            continue
        total, lost = 0, []
        try:
            for worth, reason in TASKS[task](arguments):
                total += 0 if reason else worth
                lost += [f"-{worth}: {reason}"] if reason else []
        except Refused as error:
            total, lost = 0, [f"-{MAX_POINTS[task]}: {error}"]
        print("".join(f"   {line}\n" for line in lost) + f"   {total} of {MAX_POINTS[task]}")
        points[str(task)] = {"points": total, "lost": lost}
        if task == 1:
            points["trained_together"] = sha256(MANY) if total else None
        POINTS.write_text(json.dumps(points, indent=1) + "\n")
    graded = {task: points[str(task)]["points"] for task in TASKS if str(task) in points}
    most = sum(MAX_POINTS.values())
    print(f"{sum(graded.values())} of {most} points by program; task 5 has 12 from your teacher")
    return int(any(graded.get(task) != MAX_POINTS[task] for task in arguments.tasks or TASKS))


if __name__ == "__main__":
    sys.exit(main())
