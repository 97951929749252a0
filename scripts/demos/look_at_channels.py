"""Print which files each channel holds on this instance. No training: a look at the data.

    SM_CHANNELS='["training"]' SM_CHANNEL_TRAINING=DIR python scripts/demos/look_at_channels.py

SageMaker: entry_point="look_at_channels.py", source_dir=this folder. With no `distribution` every
instance runs it by itself.
"""

import json
import os
import platform
from pathlib import Path

import numpy as np

from common.arguments import parser_for
from common.errors import ScriptError, run_main
from common.report import emit


def main() -> None:
    """Print a record for each channel that SageMaker made."""
    parser_for(__file__, __doc__).parse_args()
    # What a launcher (mpirun, torchrun) would have told this process.
    world_size = os.environ.get("WORLD_SIZE") or os.environ.get("OMPI_COMM_WORLD_SIZE")
    channels = json.loads(os.environ.get("SM_CHANNELS", "[]"))
    if not channels:
        raise ScriptError("there is no channel: SM_CHANNELS is empty. Give fit() one.")
    for channel in sorted(channels):
        variable = f"SM_CHANNEL_{channel.upper()}"
        files = sorted(Path(os.environ[variable]).glob("part-*"))
        labels = [np.load(path)["labels"] for path in files if path.suffix == ".npz"]
        emit(
            event="channel",
            computer=platform.node(),
            channel=channel,
            variable=variable,
            files=[path.name for path in files],
            images=sum(map(len, labels)),
            classes=len(np.unique(np.concatenate(labels))) if labels else 0,
            world_size=world_size or "not told",
        )


if __name__ == "__main__":
    run_main(main)
