"""The translation of the toolkit's Open MPI 4 command line to Open MPI 5."""

import importlib.machinery
import importlib.util
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from sagemaker_training import errors

import local_sagemaker
from local_sagemaker.container import framework

PATH = Path(local_sagemaker.__file__).parent / "container" / "bin" / "mpirun"
loader = importlib.machinery.SourceFileLoader("mpirun", str(PATH))
mpirun = importlib.util.module_from_spec(importlib.util.spec_from_loader("mpirun", loader))
loader.exec_module(mpirun)

TOOLKIT = shlex.split(
    "--host algo-1:2,algo-2:2 -np 4 --allow-run-as-root --display-map --tag-output "
    "-mca btl_tcp_if_include eth0 -mca oob_tcp_if_include eth0 -mca plm_rsh_no_tree_spawn 1 "
    "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib "
    "-mca orte_abort_on_non_zero_status 1 -mca btl_vader_single_copy_mechanism none "
    "-x NCCL_DEBUG=INFO -x LD_PRELOAD=/x/gethostname.so /bin/python -m mpi4py train.py -mca 1"
)


def test_the_toolkits_options_are_spelled_as_open_mpi_5_does():
    out = " ".join(mpirun.translate(TOOLKIT))
    assert out == (
        "--host algo-1:2,algo-2:2 -np 4 --allow-run-as-root --display map --tag-output "
        "--mca btl_tcp_if_include eth0 --prtemca prte_if_include eth0 "
        "--prtemca plm_ssh_no_tree_spawn 1 --bind-to none --map-by slot --mca pml ob1 "
        "--mca btl_sm_single_copy_mechanism none -x NCCL_DEBUG=INFO "
        "-x LD_PRELOAD=/x/gethostname.so /bin/python -m mpi4py train.py -mca 1"
    )


def test_of_an_option_that_stands_once_the_last_counts():
    """The toolkit has written its own before custom_mpi_options'."""
    arguments = (
        "-np 4 -map-by slot -bind-to none --map-by ppr:2:node -n 2 python train.py -np 3 -np 4"
    )
    assert " ".join(mpirun.translate(arguments.split())) == (
        "--bind-to none --map-by ppr:2:node -np 2 python train.py -np 3 -np 4"
    )


def test_there_is_a_most_of_processes():
    parameters = {"sagemaker_mpi_num_of_processes_per_host": 9_999_999}
    with pytest.raises(errors.ClientError, match=r"9,999,999. The emulator starts at most"):
        framework._mpi(SimpleNamespace(additional_framework_parameters=parameters))


@pytest.mark.parametrize(
    ("requested", "gpus", "options"), [(2, "4", None), (None, "4", 4), (None, "0", None)]
)
def test_without_a_number_mpi_starts_a_process_for_each_gpu_of_the_type(
    requested, gpus, options, monkeypatch
):
    given = []
    monkeypatch.setenv("LOCAL_SAGEMAKER_GPUS", gpus)
    monkeypatch.setattr(framework, "_run", lambda env, made: None)
    monkeypatch.setattr(framework, "_runner", lambda env, kind, options=None: given.append(options))
    name = "sagemaker_mpi_num_of_processes_per_host"
    framework._mpi(
        SimpleNamespace(additional_framework_parameters={name: requested} if requested else {})
    )
    assert (given[0] or {}).get(name) == options


def test_on_loopback_all_slots_are_one_hosts():
    out = mpirun.on_loopback(mpirun.translate(TOOLKIT))
    assert out[out.index("--host") + 1] == "localhost:4"
    assert "prte_if_include" not in out
    assert not any("LD_PRELOAD" in word for word in out)
    assert mpirun.on_loopback(["--host", "a,b", "prog"]) == ["--host", "localhost:2", "prog"]
