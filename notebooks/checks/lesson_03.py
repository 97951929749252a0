"""The checks of lesson 03: roles, the load of a server, an asynchronous server."""

from __future__ import annotations

import copy
import random

from workshop.lesson.check import Wrong, exercise


@exercise("03.1")
def for_tensorflow_2(answer) -> str:
    """Every host of clusters of 2, 3 and 5 instances, and a config that is right already."""
    for count in (2, 3, 5):
        for host in range(count):
            _check_renamed(answer, _tf_config(count, host))
    modern = _renamed(_tf_config(3, 0))
    if answer(copy.deepcopy(modern)) != modern:
        raise Wrong("A TF_CONFIG that says chief already must come back as it is.")
    return "`chief` in the cluster and in the task, everything else as SageMaker wrote it."


def _tf_config(count: int, host: int) -> dict:
    """What SageMaker sets on host number `host` of `count`."""
    names = [f"algo-{number + 1}" for number in range(count)]
    task = {"type": "worker", "index": host - 1} if host else {"type": "master", "index": 0}
    cluster = {
        "master": [f"{names[0]}:2222"],
        "ps": [f"{name}:2223" for name in names],
        "worker": [f"{name}:2222" for name in names[1:]],
    }
    return {"cluster": cluster, "environment": "cloud", "task": task}


def _renamed(config: dict) -> dict:
    names = {"master": "chief"}
    cluster = {names.get(role, role): hosts for role, hosts in config["cluster"].items()}
    task = config["task"] | {"type": names.get(config["task"]["type"], config["task"]["type"])}
    return config | {"cluster": cluster, "task": task}


def _check_renamed(answer, config: dict) -> None:
    given, expected = copy.deepcopy(config), _renamed(config)
    returned = answer(given)
    if given != config:
        raise Wrong("You changed the dictionary that you were given. Work on a deep copy.")
    if not isinstance(returned, dict):
        raise Wrong(f"You returned {returned!r}; return the new TF_CONFIG, a dictionary.")
    cluster, task = returned.get("cluster", {}), returned.get("task", {})
    if "chief" not in cluster or "master" in cluster:
        roles = ", ".join(cluster) or "none"
        raise Wrong(f"Your cluster has these roles: {roles}. It needs chief, and no master.")
    if task.get("type") != expected["task"]["type"]:
        raise Wrong(
            f"On the host with the task {config['task']} your task is of type "
            f"{task.get('type')!r}; it must be {expected['task']['type']!r}. The name is in "
            "two places, and a worker stays a worker."
        )
    if returned != expected:
        raise Wrong(f"Something besides the name has changed. Expected {expected}, got {returned}.")


@exercise("03.2")
def server_load(answer) -> str:
    """Sizes that divide evenly and sizes that do not."""
    for parameters in (10, 14_186, 25_557_032):
        for workers in (1, 3, 8):
            for servers in (1, 2, 3, 7):
                _check_load(answer, parameters, workers, servers)
    return "More workers load every server; more servers share the bytes and add connections."


def _check_load(answer, parameters: int, workers: int, servers: int) -> None:
    case = f"{parameters} weights, {workers} workers, {servers} servers"
    returned = answer(parameters, workers, servers)
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise Wrong(f"You returned {returned!r}; return two numbers: (bytes, connections).")
    size, connections = returned
    if connections != workers * servers:
        raise Wrong(
            f"{case}: you count {connections} connections. Every worker needs some weights of "
            "every server, so each talks to each."
        )
    fullest = -(-parameters // servers)
    expected = 8 * fullest * workers
    if size == expected / 2:
        raise Wrong(f"{case}: {size} bytes are one way. Weights go out and gradients come in.")
    if size == expected / workers and workers > 1:
        raise Wrong(f"{case}: {size} bytes are those of one worker. The server serves them all.")
    if size == 8 * parameters * workers and servers > 1:
        raise Wrong(f"{case}: {size} bytes pass all servers together. Each has a part of them.")
    if size != expected:
        raise Wrong(
            f"{case}: you say {size} bytes, and it is {expected}. The fullest server has {fullest} "
            "weights: whole ones, rounded up."
        )


@exercise("03.3")
def serve(answer) -> str:
    """A story small enough to follow by hand, then random ones of 1, 2, 3 and 5 workers."""
    story = [("pull", 1), ("pull", 2), ("push", 1, 1.0), ("push", 2, 3.0)]
    _check_served(answer, 10.0, story, 0.5)
    rng = random.Random(3)
    for workers in (1, 2, 3, 5):
        _check_served(answer, 1.0, _random_story(workers, 12, rng), 0.1)
    return "Nothing is averaged, no worker waits, and each gradient has its own staleness."


def _random_story(workers: int, pushes: int, rng: random.Random) -> list[tuple]:
    """Messages of workers that are anywhere in their work."""
    story: list[tuple] = []
    has_pulled = dict.fromkeys(range(1, workers + 1), False)
    while sum(message[0] == "push" for message in story) < pushes:
        worker = rng.randint(1, workers)
        if has_pulled[worker]:
            story.append(("push", worker, rng.choice([-2.0, -1.0, 1.0, 2.0])))
        else:
            story.append(("pull", worker))
        has_pulled[worker] = not has_pulled[worker]
    return story


def _served(weights: float, messages: list[tuple], rate: float) -> tuple[float, list[int]]:
    pulled, staleness = {}, []
    for message in messages:
        if message[0] == "pull":
            pulled[message[1]] = len(staleness)
        else:
            staleness.append(len(staleness) - pulled[message[1]])
            weights -= rate * message[2]
    return weights, staleness


def _check_served(answer, weights: float, messages: list[tuple], rate: float) -> None:
    returned = answer(weights, list(messages), rate)
    if not (isinstance(returned, tuple | list) and len(returned) == 2):
        raise Wrong(f"You returned {returned!r}; return (the last weights, the list of staleness).")
    last, staleness = returned
    expected, stale = _served(weights, messages, rate)
    case = f"weights {weights}, learning rate {rate}, messages {messages[:6]}"
    pushes = [message for message in messages if message[0] == "push"]
    if len(staleness) != len(pushes):
        raise Wrong(
            f"There were {len(pushes)} gradients and you give {len(staleness)} numbers of "
            "staleness: one for each gradient is wanted."
        )
    mean = weights - rate * sum(message[2] for message in pushes) / len(pushes)
    if abs(last - expected) > 1e-9 and abs(last - mean) < 1e-9:
        raise Wrong(
            f"{case}: you averaged the gradients. An asynchronous server applies each one, whole, "
            "as it comes."
        )
    if abs(last - expected) > 1e-9:
        raise Wrong(f"{case}: the last weights are {expected:g}, and you have {last:g}.")
    if list(staleness) != stale:
        extra = (
            " You count the update itself too." if list(staleness) == [s + 1 for s in stale] else ""
        )
        raise Wrong(
            f"{case}: the staleness is {stale}, and you have {list(staleness)}.{extra} Count the "
            "updates between a worker's pull and its own push."
        )
