"""Wrong solutions: the reference with a few words changed, and the tests that each must fail.

Others may fail, too: who sends wrong values cannot send the right ones slowly.
"""

# ruff: noqa: E501  (lines of the reference)

from typing import NamedTuple


class Mutant(NamedTuple):
    part: int
    file: str
    changes: dict[str, str]
    fails: set[str]


SUM = "test_sum_on_2_4_and_8_ranks"
ODD, SIZES = "test_sum_on_any_number_of_ranks", "test_sizes_that_do_not_divide_shapes_and_types"
BYTES = {"test_bytes_on_4_or_8_ranks", "test_bytes_on_any_number_of_ranks"}
AVERAGED, SLOW = "test_gradients_are_averaged", "test_the_optimizer_does_not_overtake_a_slow_link"
START, ABSENT = "test_all_ranks_start_from_rank_0", "test_parameters_without_a_gradient"
OVERLAP, CROSSING = "test_buckets_travel_while_backward_goes_on", "test_bytes_between_instances"
LINKS, HELD = "test_both_links_work_at_the_same_time", "test_bytes_held"
FLAT = "test_buckets_are_flat_and_of_bucket_bytes"
WEIGHTS = "test_the_weights_of_an_optimizer_that_is_not_divided"

TO_ALL = """copies = [torch.empty_like(tensor) for _ in ranks]
    me = dist.get_rank()
    others = [rank for rank in ranks if rank != me]
    works = [dist.irecv(copies[rank], rank) for rank in others if tensor.numel()]
    works += [dist.isend(tensor, rank) for rank in others if tensor.numel()]
    for work in works:
        work.wait()
    copies[me] = tensor.clone()
    tensor.copy_(sum(copies[ORDER]))
    return
"""
VALUES = "values = tensor.view(-1)\n    reduce_scatter"
ALL_GATHER = "    all_gather(values, ranks)\n"
EXCHANGE = "arriving = dist.irecv"
ODD_DEADLOCK = """if outgoing.numel() % 2 and incoming.numel():
        dist.send(outgoing, ranks[(place + 1) % len(ranks)])
        dist.recv(incoming, ranks[place - 1])
        return
    arriving = dist.irecv"""
REDUCE = "self.work = dist.all_reduce(self.values, async_op=True)"
GATHER = """self.parts = [torch.empty_like(self.values) for _ in range(dist.get_world_size())]
        self.work = dist.all_gather(self.parts, self.values, async_op=True)"""
UNTIED = """self.module, self.samples = module, 0
        for inner in module.modules():
            for name, p in list(inner._parameters.items()):
                if p is not None:
                    copy = nn.Parameter(p.detach().clone(), requires_grad=p.requires_grad)
                    inner._parameters[name] = copy"""
SHARE = "dist.all_gather_into_tensor(weights, self.part.detach())"
PADDED = """weights.zero_()
        weights[self.rank * self.length :][: self.length] = self.part.detach()
        dist.all_reduce(weights)"""
ALL_BUCKETS = """for bucket in self.buckets:
            if bucket.work:
                continue
            if bucket.ready < len(bucket.parameters):
                return
            bucket.begin(self.samples)"""
IN_ANY_ORDER = ALL_BUCKETS.replace("return", "continue")
LATE_START = """for bucket in self.buckets:
            if not bucket.work:
                bucket.begin(self.samples)
        for"""
FINISH_SENT = "            if bucket.work:\n                bucket.finish()\n"
OTHER_MEMORY = """result = tensor.clone()
    ring.all_reduce(result, op)
    tensor.data = result"""
AS_FLOAT32 = """result = tensor.float()
    ring.all_reduce(result, op)
    tensor.copy_(result)"""
EMPTY_HOOK = {"self._begin_complete_ones()\n\n        return": "pass\n\n        return"}
SAMPLES_FIRST = EMPTY_HOOK | {
    "self.module, self.samples = module, 0": "self.module = module",
    "    def _hook(": """    @property
    def samples(self):
        return self.own_samples

    @samples.setter
    def samples(self, samples):
        self.own_samples = samples
        self.counted = dist.all_reduce(torch.tensor(samples), async_op=True)

    def _hook(""",
}
STALE_VIEWS = """self.part.grad = None
        self.views = [p.grad.view(-1) for p in self.params]"""
CROSS = "crossing.append(network.submit(_cross, part, inter))"
WHOLE_CHUNK = "ring.all_gather(chunk, intra)\n            crossing.append(network.submit(_cross, chunk, inter))"

MUTANTS = {
    "the sum for the mean": Mutant(1, "ring.py", {'op == "mean"': "False"}, {"test_mean"}),
    "the mean for the sum": Mutant(1, "ring.py", {'op == "mean"': "True"}, {SUM, ODD, SIZES}),
    "a copy is reduced": Mutant(
        1, "ring.py", {VALUES: VALUES.replace("tensor.", "tensor.clone().")}, {SUM, "test_mean"}
    ),
    "no all-gather": Mutant(1, "ring.py", {ALL_GATHER: ""}, {SUM, ODD, "test_mean", SIZES}),
    "dist.all_reduce": Mutant(
        1, "ring.py", {VALUES: "return dist.all_reduce(tensor)\n    reduce_scatter"}, {SUM, *BYTES}
    ),
    "everything to everybody": Mutant(
        1, "ring.py", {VALUES: TO_ALL.replace("[ORDER]", "") + "    " + VALUES}, BYTES
    ),
    "everything, added in an order of its own": Mutant(
        1,
        "ring.py",
        {VALUES: TO_ALL.replace("[ORDER]", "[me:] + copies[:me]") + "    " + VALUES},
        {SIZES, *BYTES},
    ),
    "deadlock at odd sizes": Mutant(1, "ring.py", {EXCHANGE: ODD_DEADLOCK}, {ODD}),
    "the rest of a division is left out": Mutant(
        1,
        "ring.py",
        {"values = tensor.view(-1)": "values = tensor.view(-1)[: tensor.numel() // len(ranks) * len(ranks)]"},
        {SIZES},
    ),
    "chunks arrive in the wrong place": Mutant(
        1, "ring.py", {"place - step - 1) % len(ranks)], ranks": "place - step + 1) % len(ranks)], ranks"}, {ODD}
    ),
    "the tensor is given other memory": Mutant(
        1, "adapters.py", {"ring.all_reduce(tensor, op)": OTHER_MEMORY}, {SUM, ODD, SIZES, "test_mean"}
    ),
    "all types as float32": Mutant(1, "adapters.py", {"ring.all_reduce(tensor, op)": AS_FLOAT32}, {SIZES}),
    "no broadcast": Mutant(2, "ddp.py", {"dist.broadcast(tensor.detach(), 0)": "pass"}, {START}),
    "buffers are not broadcast": Mutant(2, "ddp.py", {", *module.buffers()": ""}, {START}),
    "the sum of the gradients": Mutant(
        2, "ddp.py", {"(total / samples)": "total"}, {AVERAGED, "test_uneven_shards"}
    ),
    "the mean of the ranks' means": Mutant(
        2, "ddp.py", {"self.values *= samples": "pass"}, {"test_uneven_shards"}
    ),
    "the step does not wait": Mutant(2, "ddp.py", {"self.work.wait()": "pass"}, {SLOW}),
    "buckets in the order in which they fill": Mutant(
        2, "ddp.py", {ALL_BUCKETS: IN_ANY_ORDER}, {ABSENT}
    ),
    "tied weights are cut apart": Mutant(
        2, "ddp.py", {"self.module, self.samples = module, 0": UNTIED}, {"test_tied_weights"}
    ),
    "only full buckets are sent": Mutant(2, "ddp.py", {LATE_START: "for", "            bucket.finish()\n": FINISH_SENT}, {ABSENT}),
    "an exchange for each gradient": Mutant(
        2, "ddp.py", {"> bucket_bytes": "> 0"}, {FLAT}
    ),
    "all buckets after backward": Mutant(2, "ddp.py", EMPTY_HOOK, {OVERLAP}),
    "all buckets after backward, numbers of samples before": Mutant(2, "ddp.py", SAMPLES_FIRST, {OVERLAP}),
    "one bucket in its hook, the others after backward": Mutant(
        2, "ddp.py", {"            bucket.begin(self.samples)\n\n": "            return bucket.begin(self.samples)\n\n", "if bucket.work:\n                continue": "if bucket.work:\n                return"}, {OVERLAP}
    ),
    "numbers for bytes": Mutant(2, "ddp.py", {"p.nbytes for": "p.numel() for"}, {FLAT}),
    "four times as many buckets": Mutant(2, "ddp.py", {"> bucket_bytes": "> bucket_bytes / 4"}, {FLAT}),
    "no keywords": Mutant(
        2, "ddp.py", {"*inputs, **named):": "x):", "*inputs, **named)\n": "x)\n"}, {START}
    ),
    "the hook waits": Mutant(
        2, "ddp.py", {REDUCE: REDUCE + "\n        self.work.wait()"}, {OVERLAP}
    ),
    "all-gather and a local sum": Mutant(
        2,
        "ddp.py",
        {REDUCE: GATHER, "self.work.wait()": "self.work.wait()\n        self.values = sum(self.parts)"},
        {"test_bytes_of_a_step"},
    ),
    "the hook runs before the gradient is there": Mutant(
        2, "ddp.py", {"register_post_accumulate_grad_hook": "register_hook"}, {AVERAGED}
    ),
    "the whole state is kept": Mutant(
        3,
        "adapters.py",
        {"sharded.ShardedOptimizer(params, optimizer_class, **options)": "optimizer_class(params, **options)"},
        {HELD},
    ),
    "the whole weights are kept": Mutant(
        3, "sharded.py", {"weights = torch.empty": "weights = self.weights = torch.empty"}, {HELD}
    ),
    "the whole weights are kept by NumPy": Mutant(
        3, "sharded.py", {SHARE: SHARE + "\n        self.copies = {0: weights.numpy().copy()}"}, {HELD}
    ),
    "views of old gradients are kept": Mutant(3, "sharded.py", {"self.part.grad = None": STALE_VIEWS}, {HELD}),
    "frozen parameters are updated": Mutant(
        3, "sharded.py", {"[p for p in params if p.requires_grad], dist": "params, dist", "[p.grad for p in self.params]": "[torch.zeros_like(p) if p.grad is None else p.grad for p in self.params]"}, {"test_a_frozen_parameter"}
    ),
    "zero_grad does nothing": Mutant(3, "sharded.py", {"parameter.grad = None": "pass"}, {WEIGHTS}),
    "parts are not shared": Mutant(3, "sharded.py", {SHARE: "return"}, {WEIGHTS}),
    "a learning rate of its own": Mutant(
        3,
        "sharded.py",
        {"= self.optimizer.param_groups": "= [dict(g) for g in self.optimizer.param_groups]"},
        {"test_a_learning_rate_that_changes"},
    ),
    "an all-reduce of weights and zeros": Mutant(
        3, "sharded.py", {SHARE: PADDED}, {"test_bytes_of_a_step"}
    ),
    "gradients of other ranks' parts": Mutant(
        3, "sharded.py", {"-self.rank * self.length": "0"}, {WEIGHTS}
    ),
    "the hierarchy's result in other memory": Mutant(
        4, "adapters.py", {"hierarchical.all_reduce(tensor,": "result = tensor.clone()\n    hierarchical.all_reduce(result,", "chunk_bytes)\n": "chunk_bytes)\n    tensor.data = result\n"}, {"test_sum"}
    ),
    "a ring over all ranks": Mutant(
        4,
        "hierarchical.py",
        {"    local_rank = dist": '    return ring.all_reduce(tensor, "sum")\n    local_rank = dist'},
        {CROSSING},
    ),
    "one link after the other": Mutant(
        4, "hierarchical.py", {CROSS: f"{CROSS}\n            crossing[-1].result()"}, {LINKS}
    ),
    "nothing crosses": Mutant(4, "hierarchical.py", {CROSS: "pass", ", strict=True": ""}, {"test_sum"}),
    "every rank's whole chunk crosses": Mutant(
        4, "hierarchical.py", {CROSS: WHOLE_CHUNK, "crossed.result()\n            ring.all_gather(chunk, intra)": "crossed.result()"}, {CROSSING}
    ),
}  # fmt: skip
FEW = ("the rest of a division is left out", "the mean of the ranks' means")
