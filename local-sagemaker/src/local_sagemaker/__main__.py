"""`python -m local_sagemaker`: the command `local-sagemaker`."""

from local_sagemaker.cli import main

if __name__ == "__main__":
    main(prog_name="local-sagemaker")
