"""The known mistake: every host of the cluster trains by itself, without a strategy.

The master saves its own model and the job succeeds, but nothing of what the others saw is in it.
As in train_tf_ps.py --shard-by class, host h sees only the classes h, h + hosts, ...
"""

import json
import os
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from common.data import load_channel  # noqa: E402

config = json.loads(os.environ.pop("TF_CONFIG"))
hosts = config["cluster"]["master"] + config["cluster"]["worker"]
me = hosts.index(config["cluster"][config["task"]["type"]][config["task"]["index"]])

images, labels = load_channel(os.environ["SM_CHANNEL_TRAINING"])
mine = labels % len(hosts) == me
with tempfile.TemporaryDirectory() as folder:
    np.savez(Path(folder) / "part-00000.npz", images=images[mine], labels=labels[mine])
    sys.argv[1:] = [*sys.argv[1:], "--training", folder]
    if me:  # as with one SM_MODEL_DIR a host, only the master's output counts here
        sys.argv += ["--save-to", folder + "/model"]
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    runpy.run_path(str(SCRIPTS / "train_tf.py"), run_name="__main__")
