"""Several hosts, parameter servers, and no training together: a mistake to recognise.

    python scripts/launch/local_tf_cluster.py --ps 1 scripts/demos/train_tf_ps_broken.py

SageMaker: as for train_tf_ps.py. This has the form of a well-known example: plain `model.fit`,
started with distribution={"parameter_server": {"enabled": True}}. The launcher starts a server on
every host, and nothing here ever speaks to one. So each host trains a model of its own on what
it sees, the first host's is saved, and the job succeeds.

With --shard-by class, host h of H sees only the classes h, h + H, ..., as in train_tf_ps.py.
"""

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
import json
import os

import numpy as np

from common.arguments import parser_for
from common.data import CLASSES, load_channel
from common.errors import run_main
from common.model_tf import accuracy, build_model, build_optimizer, prepare, save_model
from common.report import emit, report_weights


def main() -> None:
    """Read the arguments, train, print what this host's model knows."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--shard-by", choices=["example", "class"], default="example")
    args = parser.parse_args()
    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    prepare(args)
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    hosts = len(config["cluster"]["worker"]) + 1  # the master trains too
    number = 0 if task["type"] == "master" else task["index"] + 1
    owner = labels if args.shard_by == "class" else np.arange(len(labels))
    rows = owner % hosts == number

    model = build_model(images.shape[1:], args.hidden_units)
    model.compile(
        optimizer=build_optimizer(args.learning_rate, model),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    history = model.fit(
        images[rows].astype(np.float32),
        labels[rows],
        batch_size=args.global_batch_size,
        epochs=args.epochs,
        verbose=0,
    )
    loss = history.history["loss"][-1]
    emit(event="epoch", epoch=args.epochs, train_loss=loss, test_accuracy=accuracy(model, *test))

    of_class = [[part[test[1] == label] for part in test] for label in range(CLASSES)]
    emit(event="classes", accuracy=[round(accuracy(model, *part), 4) for part in of_class])
    report_weights(model.get_weights(), rank=number)
    if number == 0:
        save_model(model, args.save_to)


if __name__ == "__main__":
    run_main(main)
