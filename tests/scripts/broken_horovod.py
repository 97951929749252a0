"""train_tf_horovod.py with its all-reduce taken out: every rank trains a model of its own."""

import runpy
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from common import keras2  # noqa: E402, F401, I001  (before Horovod, as in the script)
import horovod.tensorflow as hvd  # noqa: E402

hvd.DistributedGradientTape = lambda tape, *args, **kwargs: tape
runpy.run_path(str(SCRIPTS / "train_tf_horovod.py"), run_name="__main__")
