"""Prints what a script sees on an instance; leaves a model and an output file."""

import json
import os
import pathlib
import socket
import sys
import time

NAMES = ("SM_HOSTS", "SM_CURRENT_HOST", "SM_NUM_GPUS", "SM_CHANNELS", "SM_CHANNEL_TRAINING")
NAMES += ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_NETWORK_INTERFACE_NAME", "TF_CONFIG")
NAMES += ("SM_MASTER_HOSTNAME", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "FOO")
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
print("SEEN " + json.dumps(seen), flush=True)
for piece in ("one", " ", "two three", "\n"):  # a line in pieces, as print does without a buffer
    sys.stdout.write(piece)
    sys.stdout.flush()
    time.sleep(0.05)
print(f"train_loss: {0.5 if seen['hostname'] == 'algo-1' else 0.25}", flush=True)
model = pathlib.Path(os.environ["SM_MODEL_DIR"])
(model / f"weights-{seen['hostname']}.txt").write_text("w")
pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"], "table.csv").write_text("a,b\n")
