"""Print which files each channel holds on this instance. No training: a look at the data.

    python scripts/demos/look_at_channels.py

SageMaker: entry_point="look_at_channels.py", source_dir=this folder. With no `distribution` every
instance runs it by itself.
"""

import os
import platform

import numpy as np

from common.arguments import parser_for
from common.data import load_channel
from common.errors import run_main
from common.report import emit


def main() -> None:
    """Print a record for each of the two channels."""
    args = parser_for(__file__, __doc__).parse_args()
    # What a launcher (mpirun, torchrun) would have told this process.
    world_size = os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE")
    for channel, folder in (("training", args.training), ("test", args.test)):
        _, labels = load_channel(folder)
        emit(
            event="channel",
            computer=platform.node(),
            channel=channel,
            files=sorted(path.name for path in folder.glob("part-*.npz")),
            images=len(labels),
            classes=len(np.unique(labels)),
            world_size=world_size or "not told",
        )


if __name__ == "__main__":
    run_main(main)
