"""A parameter server process: `python -m local_sagemaker.container.parameter_server CLUSTER INDEX`.

CLUSTER is TF_CONFIG's cluster as JSON. The process serves for ever; it ends with its
instance. Like SageMaker's, it never takes a GPU.
"""

from __future__ import annotations

import gc
import json
import os
import sys


def main() -> None:
    cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # a server has no model; Keras 3 takes 2 s to import
    # Nor has it inputs: Keras imports these where it finds them, and None is "not installed".
    sys.modules.update(dict.fromkeys(("pandas", "scipy", "PIL", "h5py")))  # type: ignore[arg-type]
    gc.disable()  # it would search what an import makes for garbage, again and again
    import tensorflow as tf

    gc.enable()

    # A thread for each process that may wait here. TensorFlow's default is one a core, and
    # with a single core (an instance here may have just one) everybody waits for ever.
    processes = sum(len(addresses) for addresses in cluster.values())
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster),
        job_name="ps",
        task_index=index,
        config=tf.compat.v1.ConfigProto(inter_op_parallelism_threads=processes),
        protocol="grpc",
    )
    server.join()


if __name__ == "__main__":
    main()
