"""What the unmodified sagemaker-training toolkit makes of a job's input files.

    python toolkit_says.py BASE_DIR      # BASE_DIR stands for /opt/ml and holds input/config

Prints JSON: the SM_* variables, the script's arguments, and the command of its MPI launcher
if the hyperparameters ask for it. Nothing of this kit is imported.
"""

import json
import os
import sys


def main() -> None:
    os.environ["SAGEMAKER_BASE_DIR"] = sys.argv[1]
    from sagemaker_training import environment, mapping, params, runner

    env = environment.Environment()
    variables = {name: str(value) for name, value in env.to_env_vars().items()}
    arguments = mapping.to_cmd_args(env.hyperparameters)
    record = {"variables": variables, "arguments": arguments}
    if env.additional_framework_parameters.get(params.MPI_ENABLED):
        kind = runner.MPIRunnerType
        made = runner.get(kind, env.user_entry_point, arguments, env.to_env_vars(), None)
        record["command"] = made._create_command()
    print(json.dumps(record).replace(sys.argv[1], "/opt/ml"))


if __name__ == "__main__":
    main()
