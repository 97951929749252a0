"""What the tests of jobs share: an estimator of the tests' own script."""

from pathlib import Path


def estimator(session, name, **hyperparameters):
    """An estimator that has no job yet. Its script only talks, or fails if `fail` is given."""
    from sagemaker.tensorflow import TensorFlow

    settings = session.job_settings(name)
    settings["source_dir"] = str(Path(__file__).parent / "job_script")
    return TensorFlow(
        entry_point="talk.py",
        framework_version="2.12.0",
        py_version="py310",
        instance_type="ml.c5.xlarge",
        instance_count=1,
        hyperparameters=hyperparameters,
        **settings,
    )
