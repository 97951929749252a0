"""DataParallel's steps with threads train what one process trains."""

import sys
import threading

import pytest
from script_harness import DEMOS, TEN_STEPS

pytestmark = pytest.mark.timeout(600)


def test_threads_train_what_one_process_trains(run, ten_steps, tmp_path):
    import torch

    done = run(sys.executable, DEMOS / "train_torch_threads.py", *TEN_STEPS)
    assert done.events("parallel")[0]["replicas"] == 2
    state = torch.load(tmp_path / "model" / "model.pt", weights_only=True)["state_dict"]
    arrays = [value.numpy() for value in state.values()]
    pairs = zip(ten_steps, arrays, strict=True)
    assert 0 < max(float(abs(array - other).max()) for array, other in pairs) <= 3e-7


def test_the_threads_are_threads_and_the_order_is_kept():
    import torch
    from train_torch_threads import ThreadParallel

    class Watched(torch.nn.Linear):
        def forward(self, batch):
            calls.append((threading.get_ident(), len(batch), torch.is_grad_enabled()))
            together.wait(timeout=30)  # broken unless as many threads are in here at once
            return super().forward(batch)

    calls, together = [], threading.Barrier(3)
    torch.manual_seed(0)
    module, batch = Watched(4, 2), torch.rand(10, 4)
    output = ThreadParallel(module, 3)(batch)
    expected = torch.nn.functional.linear(batch, module.weight, module.bias)
    assert torch.allclose(output, expected, atol=1e-6)
    assert len({ident for ident, *_ in calls} - {threading.get_ident()}) == 3
    assert sorted(length for _, length, _ in calls) == [3, 3, 4]
    output.sum().backward()
    assert torch.allclose(module.weight.grad[0], batch.sum(0), atol=1e-5)
    calls.clear()
    with torch.no_grad():
        assert not ThreadParallel(module, 3)(batch).requires_grad
    assert not any(with_gradients for *_, with_gradients in calls)
