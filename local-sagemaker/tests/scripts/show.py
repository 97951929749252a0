"""Prints what a script sees on an instance; leaves a model and an output file."""

import json
import os
import pathlib
import socket
import sys
import time

NAMES = ("SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_CHANNELS", "SM_CHANNEL_TRAINING")
NAMES += ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_NETWORK_INTERFACE_NAME", "TF_CONFIG")
NAMES += ("SM_MASTER_HOSTNAME", "MASTER_ADDR", "FOO")
host = os.environ.get("LOCAL_SAGEMAKER_HOST") or socket.gethostname()
seen = {name: os.environ.get(name) for name in NAMES}
seen["hostname"] = socket.gethostname()
seen["arguments"] = sys.argv[1:]
seen["channel"] = sorted(
    path.name for path in pathlib.Path(os.environ["SM_CHANNEL_TRAINING"]).iterdir()
)
if "OMPI_COMM_WORLD_RANK" in os.environ:
    from mpi4py import MPI

    seen["rank"] = MPI.COMM_WORLD.Get_rank()
    seen["size"] = MPI.COMM_WORLD.allreduce(1)
    seen["local_rank"] = int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
if "RANK" in os.environ:  # torchrun has told every process of the others
    seen |= {name.lower(): int(os.environ[name]) for name in ("RANK", "LOCAL_RANK")}
    seen["size"] = int(os.environ["WORLD_SIZE"])
say = sys.stdout.write  # one write for a line: torchrun's ranks share an instance's output
say("SEEN " + json.dumps(seen) + "\n")
sys.stdout.flush()
pieces = ("one", " ", "two three", "\n") if "RANK" not in os.environ else ()
for piece in pieces:  # a line in pieces, as print does without a buffer
    say(piece)
    sys.stdout.flush()
    time.sleep(0.05)
say(f"train_loss: {0.5 if seen['hostname'] == 'algo-1' else 0.25}\n")
model = pathlib.Path(os.environ["SM_MODEL_DIR"])
(model / f"weights-{seen['hostname']}.txt").write_text("w")
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "table.csv").write_text("a,b\n")
