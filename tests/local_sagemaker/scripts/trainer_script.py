"""As run_glue.py of huggingface/transformers under an estimator: a Trainer-like loop.

Hyperparameters are words ("True", "1e-3"); checkpoint-N folders are listed to find the last one,
as transformers.trainer_utils.get_last_checkpoint does.
"""

import argparse
import json
import os
import re


def strtobool(text: str) -> bool:
    return {"true": True, "false": False, "1": True, "0": False}[text.lower()]


parser = argparse.ArgumentParser()
parser.add_argument("--do_train", type=strtobool, nargs="?", const=True, default=False)
parser.add_argument("--fp16", type=strtobool, nargs="?", const=True, default=False)
parser.add_argument("--learning_rate", type=float, default=5e-5)
parser.add_argument("--max_steps", type=int, default=-1)
parser.add_argument("--model_name_or_path", type=str)
parser.add_argument("--label_names", type=str)
parser.add_argument("--output_dir", type=str)
args, unknown = parser.parse_known_args()

folder = "/opt/ml/checkpoints"
steps = [
    int(one[1]) for name in os.listdir(folder) if (one := re.fullmatch(r"checkpoint-(\d+)", name))
]
first = max(steps, default=0)
for step in range(first + 1, args.max_steps + 1):
    os.makedirs(f"{folder}/checkpoint-{step}", exist_ok=True)
    with open(f"{folder}/checkpoint-{step}/trainer_state.json", "w") as stream:
        json.dump({"global_step": step}, stream)
    print({"loss": 1 / step, "epoch": step}, flush=True)
os.makedirs(args.output_dir, exist_ok=True)
with open(os.path.join(args.output_dir, "config.json"), "w") as stream:
    json.dump({"_name_or_path": args.model_name_or_path}, stream)
print("ARGS", args.do_train, args.fp16, args.learning_rate, unknown, flush=True)
print(
    "HPS",
    json.loads(os.environ["SM_HPS"])["label_names"],
    os.environ["SM_HP_MAX_STEPS"],
    flush=True,
)
print("BEGAN", first, flush=True)
