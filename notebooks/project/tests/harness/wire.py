"""Between the student's code and gloo: every call of a process group passes here.

It is counted, may be refused, and may be given a slow link. Messages are counted with their exact
bytes, collectives as a ring sends them.
"""

import functools
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_leaves

# A method of ProcessGroup, and how many times a ring sends (n - 1) / n of its largest argument.
_ONCE = (
    *("broadcast", "reduce", "gather", "scatter", "alltoall", "alltoall_base", "all_to_all_single"),
    *("allgather", "allgather_coalesced", "allgather_into_tensor_coalesced", "_allgather_base"),
    *("all_gather_single", "all_gather_single_coalesced", "reduce_scatter", "_reduce_scatter_base"),
    *("reduce_scatter_single", "reduce_scatter_single_coalesced"),
    *("reduce_scatter_tensor_coalesced", "barrier"),
)
COLLECTIVES = {"allreduce": 2, "allreduce_coalesced": 2} | dict.fromkeys(_ONCE, 1)


@dataclass
class Call:
    """A message or a collective. nbytes: what this rank sends. crosses: to another instance."""

    name: str
    nbytes: float
    crosses: bool
    travelling: Future | None = None  # on a slow link


class Wire:
    """What this rank sends.

    Args:
        refused: why collectives are refused; empty: they are not.
        delay: from a Call to the seconds that it holds its link, or None: as fast as gloo is.
            A rank has two links, one to its instance and one to the others.
        ranks_per_instance: 0: all ranks are on one instance.
    """

    def __init__(
        self,
        refused: str = "",
        delay: Callable[[Call], float] | None = None,
        ranks_per_instance: int = 0,
    ) -> None:
        self.refused, self.delay, self.per_instance = refused, delay, ranks_per_instance
        self.calls: list[Call] = []
        self._links = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
        for name in ("send", *COLLECTIVES):
            if method := getattr(dist.ProcessGroup, name, None):
                setattr(dist.ProcessGroup, name, self._watched(name, method))

    def sent(self, crossing_only: bool = False) -> float:
        """Return the bytes sent so far."""
        return sum(call.nbytes for call in self.calls if call.crosses or not crossing_only)

    def check_all_left(self, tensor: torch.Tensor) -> None:
        """Raise AssertionError if what this rank adds to a sum cannot have left it."""
        assert dist.get_world_size() == 1 or self.sent() >= tensor.nbytes, (
            f"the sum of {tensor.nbytes:,} bytes is right, but dist.send and isend sent only "
            f"{self.sent():,.0f}: each number must leave each rank. What else carries them?"
        )

    def travelling(self) -> float:
        """Return the bytes that are still on a slow link."""
        calls = [call for call in list(self.calls) if call.travelling]
        return sum(call.nbytes for call in calls if not call.travelling.done())

    def _watched(self, name: str, method: Callable) -> Callable:
        def watched(group, *arguments, **named):
            if self.refused and name != "send":
                raise RuntimeError(f"{self.refused} Your code calls ProcessGroup.{name}.")
            call = self._call(name, group, arguments)
            self.calls.append(call)
            begin = functools.partial(method, group, *arguments, **named)
            if self.delay is None:
                return begin()
            link = self._links[call.crosses]
            call.travelling = link.submit(_begin_late, self.delay(call), begin)
            return _LateWork(call.travelling)

        return watched

    def _call(self, name: str, group, arguments: tuple) -> Call:
        if name == "send":
            tensors, to, *_ = arguments
            receiver, sender = dist.get_global_rank(group, to), dist.get_rank()
            per_instance = self.per_instance or dist.get_world_size()
            crosses = receiver // per_instance != sender // per_instance
            return Call(name, sum(tensor.nbytes for tensor in tensors), crosses)
        whole = max(
            sum(leaf.nbytes for leaf in tree_leaves(argument) if isinstance(leaf, torch.Tensor))
            for argument in (*arguments, ())
        )
        return Call(name, COLLECTIVES[name] * whole * (group.size() - 1) / group.size(), False)


def _begin_late(seconds: float, begin: Callable):
    time.sleep(seconds)
    return begin()


class _LateWork:
    """The Work of a call that has yet to pass a slow link."""

    def __init__(self, work: Future) -> None:
        self._work = work

    def wait(self, *timeout) -> bool:
        return self._work.result().wait(*timeout)

    def is_completed(self) -> bool:
        return self._work.done() and self._work.result().is_completed()

    def get_future(self) -> torch.futures.Future:
        late: torch.futures.Future = torch.futures.Future()

        def finish(work: Future) -> None:
            work.result().wait()
            late.set_result(work.result().result())

        self._work.add_done_callback(finish)
        return late

    def __getattr__(self, name: str):
        return getattr(self._work.result(), name)
