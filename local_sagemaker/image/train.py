"""The command of every instance: `python -m local_sagemaker.image.train`.

AWS's images run the command `train` of the sagemaker-training toolkit. This is the same
command, with three differences that a container runtime would make for it.
"""

from __future__ import annotations

import os
import signal
import sys

from local_sagemaker.image import lazy_imports


def main() -> None:
    # A container's pid 1 ignores SIGTERM, and its children do not: a script gets the
    # signal and its grace period, while the toolkit stays to report how the script ended.
    # (A handler, not SIG_IGN: that would be inherited by the script.)
    signal.signal(signal.SIGTERM, lambda *_: None)
    if os.environ.get("LOCAL_SAGEMAKER_NO_LAYER"):
        _install_beside_the_job()
    lazy_imports.install()
    from sagemaker_training import trainer

    trainer.train()


def _install_beside_the_job() -> None:
    """Without a writable layer, keep requirements.txt out of the learner's environment."""
    site = os.path.join(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "site-packages")
    os.environ["PIP_TARGET"] = site
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [site, os.environ.get("PYTHONPATH", "")])
    )
    sys.path.insert(0, site)


if __name__ == "__main__":
    main()
