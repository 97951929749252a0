"""Real jobs on the emulator, followed to their end."""

from datetime import datetime

import pytest

import workshop
from workshop.jobs.follow import JobFailed, JobResult
from workshop.jobs.logs import parse
from workshop.lesson.results import save_results

METRICS = {"loss": 4.1e-05, "speed": 10351.7}


def test_a_job_is_followed_to_its_end(session, estimator, capsys):
    job = estimator(session, "talk")
    job.fit(wait=False)
    result = workshop.follow(job)
    assert result.status == "Completed"
    assert list(result.phases) == ["Starting", "Downloading", "Training", "Uploading"]
    assert result.phases["Training"] > 0
    assert result.metrics["train_loss"] == 0.5
    assert result.table("step")["train_loss"].tolist() == [1.0, 0.5]
    assert result.hyperparameters["sagemaker_program"] == "talk.py"
    assert result.events[0]["host"] == "algo-1"
    phases = result.description["SecondaryStatusTransitions"]
    (training,) = (phase for phase in phases if phase["Status"] == "Training")
    began, ended = training["StartTime"].timestamp(), training["EndTime"].timestamp()
    times = [line.time for line in result.lines if line.event]
    assert times == sorted(times) and began - 0.1 <= times[0] and times[-1] <= ended + 1
    out = capsys.readouterr().out
    assert "Completed" in out and "Training" in out and "train_loss 0.5" in out
    with pytest.raises(ValueError, match=r"no 'epoch' records, but: \['step'\]"):
        result.table("epoch")


def test_jobs_run_one_after_the_other_until_one_fails(session, estimator, capsys):
    jobs = {
        "first": estimator(session, "first"),
        "bad": estimator(session, "bad", fail=1),
        "never": estimator(session, "never"),
    }
    capsys.readouterr()
    with pytest.raises(JobFailed, match=r"(?s)bad: .*the test wanted this.*after it: never\."):
        workshop.run_jobs(jobs)
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert shown == [["first", "Completed,"], ["bad", "Failed"]]
    assert jobs["never"].latest_training_job is None
    names = [jobs[name].latest_training_job.name for name in ("first", "bad")]
    first, bad = (workshop.follow(name, session, check=False) for name in names)
    assert (first.status, bad.status) == ("Completed", "Failed")
    assert first.description["TrainingEndTime"] <= bad.description["CreationTime"]
    with pytest.raises(JobFailed, match=r"Failed(?s:.*)the test wanted this"):
        workshop.follow(names[1], session)


def test_a_summary_shows_large_metrics_without_an_exponent():
    metrics = [{"MetricName": name, "Value": value} for name, value in METRICS.items()]
    description = {"TrainingJobStatus": "Completed", "SecondaryStatusTransitions": []}
    result = JobResult("some-job", description | {"FinalMetricDataList": metrics}, [])
    assert "loss 4.1e-05, speed 10,352" in result.summary()


def test_what_cannot_be_followed_says_so(session, estimator):
    with pytest.raises(ValueError, match="needs the session"):
        workshop.follow("some-job")
    with pytest.raises(ValueError, match="no job yet"):
        workshop.follow(estimator(session, "never"))


def test_rank_and_host_are_read_from_the_line():
    line = parse("algo-1", '[1,mpirank:3,algo-2]<stdout>: {"event": "weights", "rank": 3}')
    assert (line.rank, line.host, line.stream) == (3, "algo-2", "algo-1")
    assert line.event == {"host": "algo-2", "rank": 3, "event": "weights"}
    plain = parse("algo-1", '{"event": "step"}')
    assert (plain.rank, plain.host) == (None, "algo-1")
    assert parse("algo-1", "{not json").event is None
    assert parse("algo-1", '{"no": "event"}').event is None
    of_sdk_v3 = parse("algo-1", '[1,3]<stdout>: {"event": "weights", "rank": 3}')
    assert of_sdk_v3.rank == 3 and of_sdk_v3.host == "algo-1" and of_sdk_v3.event


def test_repeated_phases_add_up_and_final_states_are_no_phase():
    at = [datetime(2026, 1, 1, second=second) for second in range(8)]
    steps = [("Training", 0, 4), ("Interrupted", 4, 5), ("Training", 5, 7), ("Completed", 7, 7)]
    transitions = [{"Status": name, "StartTime": at[a], "EndTime": at[b]} for name, a, b in steps]
    result = JobResult("x", {"SecondaryStatusTransitions": transitions}, [])
    assert result.phases == {"Training": 6.0, "Interrupted": 1.0}


def test_a_metric_that_sagemaker_has_not_read_yet_is_read_from_the_log():
    definitions = [{"Name": name, "Regex": f'"{name}": ([0-9.]+)'} for name in "ab"]
    description = {
        "AlgorithmSpecification": {"MetricDefinitions": definitions},
        "FinalMetricDataList": [{"MetricName": "a", "Value": 1.0}],
    }
    lines = [
        parse("algo-1", text) for text in ('{"a": 2, "b": 3}', '{"b": 4, "c": 5}', "no metric")
    ]
    assert JobResult("x", description, lines).metrics == {"a": 1.0, "b": 4.0}


def test_only_what_json_holds_can_be_recorded():
    import numpy as np

    save_results(one=1, many=np.arange(3), text="x")
    with pytest.raises(TypeError):
        save_results(bad=object())
