"""A training script that only talks: what `follow` is tested with."""

import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--fail", type=int, default=0)
parser.add_argument("--model_dir")
arguments = parser.parse_args()
for step in (1, 2):
    print(json.dumps({"event": "step", "step": step, "train_loss": 1 / step}), flush=True)
if arguments.fail:
    raise ValueError("the test wanted this")
