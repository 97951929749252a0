"""Read TFRecord files record by record, as train_tf_fit.py does, or whole, into arrays.

    python scripts/demos/read_tfrecord.py FOLDER

Prints for each way, streaming first, a JSON line about one epoch of batches, without a model:
seconds until the first batch was there and until the last, and by how many megabytes the process
had grown at its largest so far.
--times 20 reads each file of the folder twenty times, as if there were twenty times as many.
"""

import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from common.arguments import add_flag, number, plain_parser
from common.errors import ScriptError, run_main
from common.report import emit

sys.path.append(str(Path(__file__).resolve().parents[1] / "train"))  # in a job it lies beside
import train_tf_fit
from train_tf_fit import tf


def whole(files: list[str], _rank: int, _world_size: int):
    """Return what `train_tf_fit.stream` returns, from arrays of all images and all labels."""
    records, parse, count, shape = train_tf_fit.stream(files, 0, 1)
    parts = [parse(part) for part in records.batch(1000)]
    images, labels = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    examples = tf.data.Dataset.from_tensor_slices((images, labels))
    return examples, lambda images, labels: (images, labels), count, shape


def peak_megabytes() -> float:
    """Return the most memory that this process has had so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux's ru_maxrss begins with what the parent process had
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # macOS counts bytes


def main() -> None:
    """Read one epoch in each way, and say what it took."""
    parser = plain_parser(__doc__)
    add_flag(parser, "--times", type=number(int, 1), default=1, help="read each file so often")
    add_flag(parser, "--global-batch-size", type=number(int, 1), default=64)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    files = sorted(map(str, args.folder.glob("*.tfrecord"))) * args.times
    if not files:
        raise ScriptError(f"{args.folder} holds no *.tfrecord: name a channel of such files")
    settings = SimpleNamespace(global_batch_size=args.global_batch_size, seed=0)
    list(train_tf_fit.stream(files[:1], 0, 1)[0].batch(8).take(1))  # TensorFlow has started up
    before = peak_megabytes()
    for how, open_files in {"stream": train_tf_fit.stream, "whole": whole}.items():
        began = time.perf_counter()
        examples, parse, count, _ = open_files(files, 0, 1)
        steps = count // args.global_batch_size
        for step, _ in enumerate(train_tf_fit.batches(settings, examples, parse, count, 1), 1):
            if step == 1:
                first = time.perf_counter() - began
            if step == steps:
                break
        emit(
            event="read",
            how=how,
            files=len(files),
            records=count,
            megabytes=round(sum(Path(path).stat().st_size for path in files) / 1e6, 1),
            seconds_to_first_batch=round(first, 3),
            seconds=round(time.perf_counter() - began, 3),
            grown_megabytes=round(peak_megabytes() - before, 1),
        )


if __name__ == "__main__":
    run_main(main)
