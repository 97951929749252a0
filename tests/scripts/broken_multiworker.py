"""train_tf_multiworker.py with its all-reduce taken out: every worker trains a model of its own."""

import runpy
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from common import workers_tf  # noqa: E402

workers_tf.mean_over_replicas = lambda values: values
workers_tf.leave = lambda strategy: None
runpy.run_path(str(SCRIPTS / "train_tf_multiworker.py"), run_name="__main__")
