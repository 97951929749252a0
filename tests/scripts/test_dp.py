"""DataParallel, and its steps with threads, train what one process trains."""

import sys
import threading

import pytest
from script_harness import SCRIPTS, TEN_STEPS, largest_difference, weights
from test_ddp import TOLERANCE

SCRIPT = SCRIPTS / "train_torch_dp.py"


@pytest.fixture(scope="module")
def reference(trained_alone) -> list:
    """The weights of train_torch.py after ten steps."""
    return trained_alone("train_torch.py", TEN_STEPS)


def test_without_gpus_data_parallel_only_calls_the_model(run, reference, tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = run(sys.executable, SCRIPT, *TEN_STEPS, "--dump-weights", tmp_path)
    (told,) = done.events("parallel")
    assert (told["kind"], told["gpus"], told["parts"]) == ("DataParallel", 0, 1)
    assert largest_difference(reference, weights(tmp_path)) == 0


def test_threads_train_what_one_process_trains(run, reference, tmp_path):
    command = [sys.executable, SCRIPT, *TEN_STEPS, "--cpu-replicas", "3"]
    done = run(*command, "--dump-weights", tmp_path)
    assert done.events("parallel")[0]["parts"] == 3
    assert len(done.hashes) == 1
    assert 0 < largest_difference(reference, weights(tmp_path)) <= TOLERANCE


def test_the_threads_are_threads_and_the_order_is_kept():
    import torch
    from common.threads_torch import ThreadParallel

    class Watched(torch.nn.Linear):
        def forward(self, batch):
            calls.append((threading.get_ident(), len(batch), torch.is_grad_enabled()))
            together.wait(timeout=30)  # broken unless as many threads are in here at once
            return super().forward(batch)

    calls, together = [], threading.Barrier(3)
    torch.manual_seed(0)
    module, batch = Watched(4, 2), torch.rand(10, 4)
    found = ThreadParallel(module, 3)(batch)
    expected = torch.nn.functional.linear(batch, module.weight, module.bias)
    assert torch.allclose(found, expected, atol=1e-6)
    assert len({ident for ident, *_ in calls} - {threading.get_ident()}) == 3
    assert sorted(length for _, length, _ in calls) == [3, 3, 4]
    found.sum().backward()
    assert torch.allclose(module.weight.grad[0], batch.sum(0), atol=1e-5)
    calls.clear()
    with torch.no_grad():
        assert not ThreadParallel(module, 3)(batch).requires_grad
    assert not any(with_gradients for *_, with_gradients in calls)


@pytest.mark.parametrize("variable", ["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_several_processes_are_refused(monkeypatch, variable):
    from common.errors import ScriptError
    from common.threads_torch import check_one_process

    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    check_one_process(0)
    monkeypatch.setenv(variable, "1")
    check_one_process(2)
    monkeypatch.setenv(variable, "2")
    with pytest.raises(ScriptError, match=r"with python, or use train_torch_ddp\.py"):
        check_one_process(0)


def test_an_error_is_one_line(run):
    done = run(sys.executable, SCRIPT, "--cpu-replicas", "-1", check=False)
    assert done.code == 1 and "--cpu-replicas -1: give a positive number" in done.stderr
    assert "Traceback" not in done.stderr
