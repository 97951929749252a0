"""Plausible wrong answers to lesson 00's exercises, and what they must be told."""

import argparse
from types import SimpleNamespace


def forgets_the_environment(arguments, environment):
    """Has the places of a laptop only."""
    return parsed(arguments, {})


def parsed(arguments, environment, known=True, kind=int, model_dir=True, abbreviate=False):
    parser = argparse.ArgumentParser(allow_abbrev=abbreviate)
    parser.add_argument("--epochs", type=kind, default=20)
    if model_dir:
        parser.add_argument("--model_dir")
    training = environment.get("SM_CHANNEL_TRAINING", "data/training")
    parser.add_argument("--training", default=training)
    parser.add_argument("--save-to", default=environment.get("SM_MODEL_DIR", "model"))
    return parser.parse_args(arguments) if known else parser.parse_known_args(arguments)[0]


def saves_to_model_dir(arguments, environment):
    """Believes that --model_dir is where the model belongs."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--epochs", type=int, default=20)
    default = environment.get("SM_MODEL_DIR", "model")
    parser.add_argument("--model_dir", dest="save_to", default=default)
    training = environment.get("SM_CHANNEL_TRAINING", "data/training")
    parser.add_argument("--training", default=training)
    return parser.parse_args(arguments)


def raises_an_error_of_its_own(arguments, environment):
    known = {"--epochs", "--model_dir", "--training", "--save-to"}
    if unknown := set(arguments[::2]) - known:
        raise ValueError(f"unknown: {unknown}")
    return parsed(arguments, environment)


RIGHT = {"00.2": [raises_an_error_of_its_own]}
WRONG = {
    "00.1": [
        (lambda: None, "Return the regular expression"),
        (lambda: r'"train_loss": [0-9.eE+-]+', "It has 0 groups"),
        (lambda: r'"train_loss": (([0-9]+)\.[0-9]+)', "It has 2 groups"),
        (lambda: r'"train_loss": (\d+\.\d+)', "finds nothing in the line .*: 2,"),
        (lambda: r'"train_loss": ([0-9.]+)', "finds '4.1' .* The loss there is 4.1e-05"),
        (lambda: r'"train_loss": (.+)', "must take the whole number and nothing else"),
        (lambda: r'train_loss": ([0-9.eE+-]+)', "finds '0.11' .* The loss there is 0.2153"),
        (lambda: r"train_loss: ([0-9.eE+-]+)", "finds nothing"),
        (lambda: r'"train_loss": ([0-9', "is not a regular expression"),
        (
            lambda: r'"train_loss": (.+?),',
            r'finds nothing in the line `{"event": "epoch", "train_loss"',
        ),
    ],
    "00.2": [
        (forgets_the_environment, "training is 'data/training'; it must be '/data/a'"),
        (lambda a, e: parsed(a, e, known=False), "accepts --epoch, a typing mistake"),
        (lambda a, e: parsed(a, e, abbreviate=True), "accepts --epoch, a typing mistake"),
        (lambda a, e: parsed(a, e, kind=str), "epochs is '5', a string"),
        (lambda a, e: parsed(a, e, model_dir=False), "unrecognized arguments: --model_dir"),
        (saves_to_model_dir, "save_to is 's3://b/k'"),
        (lambda a, e: {"training": "/data/a"}, "has no training. Return what parse_args"),
        (lambda a, e: SimpleNamespace(training=e["SM_CHANNEL_TRAINING"]), "has no save_to"),
    ],
}
