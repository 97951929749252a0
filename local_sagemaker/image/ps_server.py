"""A parameter server process: `python -m local_sagemaker.image.ps_server CLUSTER INDEX`.

CLUSTER is TF_CONFIG's cluster as JSON. The process serves for ever; it ends with its
instance. Like SageMaker's, it never takes a GPU.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    cluster, index = json.loads(sys.argv[1]), int(sys.argv[2])
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf

    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster), job_name="ps", task_index=index, protocol="grpc"
    )
    server.join()


if __name__ == "__main__":
    main()
