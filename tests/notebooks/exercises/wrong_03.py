"""Plausible wrong answers to the exercises of lesson 03, and what each must be told."""

import copy


def rename_in_place(tf_config):
    tf_config["cluster"]["chief"] = tf_config["cluster"].pop("master")
    tf_config["task"]["type"] = tf_config["task"]["type"].replace("master", "chief")
    return tf_config


def renamed(tf_config, **task):
    """The cluster alone is renamed; the task is what `task` says, or what it was."""
    config = copy.deepcopy(tf_config)
    config["cluster"]["chief"] = config["cluster"].pop("master")
    return config | {"task": task or config["task"]}


def keep_the_master(tf_config):
    config = copy.deepcopy(tf_config)
    config["cluster"]["chief"] = config["cluster"].get("master")
    return config


def one_way(parameters, workers, servers):
    return 4 * -(-parameters // servers) * workers, workers * servers


def one_worker(parameters, workers, servers):
    return 8 * -(-parameters // servers), workers * servers


def all_servers(parameters, workers, servers):
    return 8 * parameters * workers, workers * servers


def rounded_down(parameters, workers, servers):
    return 8 * (parameters // servers) * workers, workers * servers


def one_connection_each(parameters, workers, servers):
    return 8 * -(-parameters // servers) * workers, workers + servers


def serve_the_mean(weights, messages, learning_rate):
    gradients = [message[2] for message in messages if message[0] == "push"]
    return weights - learning_rate * sum(gradients) / len(gradients), [0] * len(gradients)


def count_the_update_too(weights, messages, learning_rate):
    updates, pulled, staleness = 0, {}, []
    for kind, worker, *gradient in messages:
        if kind == "pull":
            pulled[worker] = updates
        else:
            weights -= learning_rate * gradient[0]
            updates += 1
            staleness.append(updates - pulled[worker])
    return weights, staleness


def since_anybodys_pull(weights, messages, learning_rate):
    stale, staleness = 0, []
    for kind, _, *gradient in messages:
        if kind == "pull":
            stale = 0
        else:
            staleness.append(stale)
            weights -= learning_rate * gradient[0]
            stale += 1
    return weights, staleness


WRONG = {
    "03.1": [
        (rename_in_place, "deep copy"),
        (renamed, "it must be 'chief'. The name is in two places"),
        (lambda config: renamed(config, type="chief", index=0), "a worker stays a worker"),
        (keep_the_master, "and no master"),
    ],
    "03.2": [
        (one_way, "one way"),
        (one_worker, "serves them all"),
        (all_servers, "Each has a part"),
        (rounded_down, "rounded up"),
        (one_connection_each, "each talks to each"),
    ],
    "03.3": [
        (serve_the_mean, "averaged the gradients"),
        (count_the_update_too, "count the update itself"),
        (since_anybodys_pull, "a worker's pull and its own push"),
    ],
}
