"""Plausible wrong answers to the exercises of lesson 11, and what each must be told."""


def gb(billions, divided, ranks):
    return billions * (16 - divided + divided / ranks)


DIVIDED = {"ddp": 0, "zero1": 12, "zero2": 14, "zero3": 16, "hsdp": 16}


def right(billions, way, instances):
    return gb(billions, DIVIDED[way], 8 if way == "hsdp" else 8 * instances)


def hsdp_by_all(billions, way, instances):
    return gb(billions, DIVIDED[way], 8 * instances)


def moments_only(billions, way, instances):
    if way == "zero1":
        return gb(billions, 8, 8 * instances)
    return right(billions, way, instances)


def all_divided(billions, way, instances):
    return right(billions, way if way == "ddp" else "zero3", instances)


def without_moments(billions, way, instances):
    return 4 * billions


def layer(x, shard, mean=True, reduce=True, keep=False, gather=True):
    import torch
    import torch.distributed as dist

    n = dist.get_world_size()

    def gathered(part):
        weight = part.new_empty(n * part.shape[0], part.shape[1])
        dist.all_gather_into_tensor(weight, part)
        return weight

    class Layer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, part):
            weight = gathered(part)
            ctx.save_for_backward(x, part, *([weight] if keep else []))
            return x @ weight.T

        @staticmethod
        def backward(ctx, grad):
            x, part, *_ = ctx.saved_tensors
            rows, whole = torch.empty_like(part), grad.T @ x
            if reduce:
                dist.reduce_scatter_tensor(rows, whole)
            else:
                rows = whole.chunk(n)[dist.get_rank()] * n
            return grad @ gathered(part), rows / n if mean else rows

    return Layer.apply(x, shard) if gather else x @ gathered(shard).T


def the_sum(x, shard):
    return layer(x, shard, mean=False)


def without_the_others(x, shard):
    return layer(x, shard, reduce=False)


def keeps_the_weight(x, shard):
    return layer(x, shard, keep=True)


def without_autograd(x, shard):
    import torch
    import torch.distributed as dist

    weight = torch.empty(dist.get_world_size() * shard.shape[0], shard.shape[1])
    dist.all_gather_into_tensor(weight, shard.detach())
    return x @ weight.T


def its_rows_only(x, shard):
    return x @ shard.T


def first_that_fits(billions, instances):
    ways = ("ddp", "zero1", "zero2", "hsdp", "zero3")
    return next((way for way in ways if right(billions, way, instances) + 10 <= 80), "none")


def without_activations(billions, instances):
    ways = ("hsdp", "zero3") if instances > 1 else ("ddp", "zero1", "zero2", "hsdp")
    return next((way for way in ways if right(billions, way, instances) <= 80), "none")


def always_zero3(billions, instances):
    return "zero3" if right(billions, "zero3", instances) + 10 <= 80 else "none"


def never_zero3(billions, instances):
    ways = ("hsdp",) if instances > 1 else ("ddp", "zero1", "zero2", "hsdp")
    return next((way for way in ways if right(billions, way, instances) + 10 <= 80), "none")


WRONG = {
    "11.1": [
        (hsdp_by_all, "HSDP divides by the ranks of one instance"),
        (moments_only, "weights of 4 bytes are optimizer state"),
        (all_divided, "That is ZeRO-3"),
        (without_moments, "16 bytes for each parameter"),
    ],
    "11.2": [
        (the_sum, "times too large. A reduce-scatter adds"),
        (without_the_others, "of this rank's batch only"),
        (keeps_the_weight, "gather it again in backward"),
        (without_autograd, "no gradient in x or shard"),
        (its_rows_only, "another output than"),
    ],
    "11.3": [
        (first_that_fits, "Over the link ddp sends"),
        (without_activations, "and 10 for activations: more than 80"),
        (always_zero3, "comes first|Over the link"),
        (never_zero3, "you said 'none'"),
    ],
}
