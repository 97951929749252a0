"""Records what SageMaker's own TensorFlow toolkit makes TF_CONFIG, as the tests' oracle.

    pip download --no-deps --no-binary :all: sagemaker-tensorflow-training==20.5.0
    tar xf sagemaker_tensorflow_training-20.5.0.tar.gz
    python record_tf_config.py sagemaker_tensorflow_training-20.5.0/src > tf_config.json

The toolkit pins versions that this kit's environment cannot have, so its functions are
called here without installing it.
"""

import json
import sys

VERSION = "sagemaker-tensorflow-training 20.5.0"


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    from sagemaker_tensorflow_container import training

    cases = []
    for count in (1, 2, 3):
        hosts = [f"algo-{number + 1}" for number in range(count)]
        for host in hosts:
            case = {"hosts": hosts, "current_host": host}
            case["multi_worker_mirrored"] = training._build_tf_config_for_mwms(hosts, host)
            if count > 1:
                case["parameter_server"] = training._build_tf_config_for_ps(hosts, host)
            cases.append(case)
    json.dump({"source": VERSION, "cases": cases}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
