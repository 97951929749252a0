"""Plausible wrong answers to the exercises of lesson 12, and what each must be told."""


def _backward(parallel, batch, parts):
    from torch.nn.functional import mse_loss

    inputs, targets = batch
    (mse_loss(parallel(inputs), targets) / parts).backward()


def sends_each(parallel, optimizer, batches):
    optimizer.zero_grad()
    for batch in batches:
        _backward(parallel, batch, len(batches))
    optimizer.step()


def never_divides(parallel, optimizer, batches):
    optimizer.zero_grad()
    *first, last = batches
    with parallel.no_sync():
        for batch in first:
            _backward(parallel, batch, 1)
    _backward(parallel, last, 1)
    optimizer.step()


def never_sends(parallel, optimizer, batches):
    optimizer.zero_grad()
    with parallel.no_sync():
        for batch in batches:
            _backward(parallel, batch, len(batches))
    optimizer.step()


def steps_each(parallel, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        _backward(parallel, batch, 1)
        optimizer.step()


def last_alone(parallel, optimizer, batches):
    optimizer.zero_grad()
    _backward(parallel, batches[-1], 1)
    optimizer.step()


def only_backward_inside(parallel, optimizer, batches):
    """DDP decides in the forward pass: it sends each time, as documented."""
    from torch.nn.functional import mse_loss

    optimizer.zero_grad()
    for number, (inputs, targets) in enumerate(batches, 1):
        loss = mse_loss(parallel(inputs), targets) / len(batches)
        if number < len(batches):
            with parallel.no_sync():
                loss.backward()
        else:
            loss.backward()
    optimizer.step()


def one_batch(parallel, optimizer, batches):
    """Right: where they fit into memory together."""
    import torch
    from torch.nn.functional import mse_loss

    inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))
    optimizer.zero_grad()
    mse_loss(parallel(inputs), targets).backward()
    optimizer.step()


def moved(
    shared, weights, momentum, *, mean=True, sign=1, ahead=0.9, copy=True, memory=0.9, alone=False
):
    import torch.distributed as dist

    way = sign * (shared - weights)
    if not alone:
        dist.all_reduce(way)
        way /= dist.get_world_size() if mean else 1
    momentum.mul_(memory).add_(way)
    shared -= 0.7 * (way + ahead * momentum if ahead else momentum)
    if copy:
        weights.copy_(shared)


def the_sum(shared, weights, momentum, rate=0.7):
    moved(shared, weights, momentum, mean=False)


def backwards(shared, weights, momentum, rate=0.7):
    moved(shared, weights, momentum, sign=-1)


def plain_momentum(shared, weights, momentum, rate=0.7):
    moved(shared, weights, momentum, ahead=0)


def goes_on_alone(shared, weights, momentum, rate=0.7):
    moved(shared, weights, momentum, copy=False)


def averages_nothing(shared, weights, momentum, rate=0.7):
    moved(shared, weights, momentum, alone=True)


def names_only(shared, weights, momentum, rate=0.7):
    import torch.distributed as dist

    way = shared - weights
    dist.all_reduce(way)
    momentum = 0.9 * momentum + way / dist.get_world_size()
    shared = shared - rate * momentum
    weights = shared


def averages_weights(shared, weights, momentum, rate=0.7):
    """Right: the mean of the ways is the way to the mean."""
    import torch.distributed as dist

    dist.all_reduce(weights)
    weights /= dist.get_world_size()
    way = shared - weights
    momentum.copy_(0.9 * momentum + way)
    shared.copy_(shared - rate * (way + 0.9 * momentum))
    weights.copy_(shared)


def by_sign(gradient, left_out, count):
    left_out += gradient
    places = left_out.topk(count).indices
    values = left_out[places].clone()
    left_out[places] = 0
    return places, values


def forgets(gradient, left_out, count):
    places = gradient.abs().topk(count).indices
    return places, gradient[places]


def sends_again(gradient, left_out, count):
    left_out += gradient
    places = left_out.abs().topk(count).indices
    return places, left_out[places].clone()


def view(gradient, left_out, count):
    """What is returned is zeroed, too, if it is taken after."""
    left_out += gradient
    places = left_out.abs().topk(count).indices
    left_out[places] = 0
    return places, left_out[places]


def chooses_before_it_adds(gradient, left_out, count):
    places = gradient.abs().topk(count).indices
    left_out += gradient
    values = left_out[places].clone()
    left_out[places] = 0
    return places, values


def only_values(gradient, left_out, count):
    left_out += gradient
    return left_out.abs().topk(count).values


WRONG = {
    "12.1": [
        (sends_each, "DDP averaged 4 times.*all batches but the last"),
        (never_divides, "a sum of means. Divide each loss"),
        (never_sends, r"nothing was averaged.*outside of no_sync\(\)"),
        (steps_each, r"took 4 steps.*optimizer.step\(\) once"),
        (last_alone, "other weights than those of one large batch"),
        (only_backward_inside, "forward and backward, inside"),
    ],
    "12.2": [
        (the_sum, "goes too far: an all-reduce adds"),
        (plain_momentum, "Nesterov's looks ahead"),
        (goes_on_alone, "goes on from weights of its own"),
        (averages_nothing, "goes its own way"),
        (backwards, "goes backwards"),
        (names_only, "`momentum` is still zero"),
    ],
    "12.3": [
        (by_sign, r"-5 is larger in size than 3: choose by abs\(\)"),
        (forgets, "what was not sent is lost"),
        (sends_again, "would be sent again: set it to 0"),
        (chooses_before_it_adds, "add left_out before you choose"),
        (view, "the values are not those of the places"),
        (only_values, "is not two tensors"),
    ],
}
RIGHT = {"12.1": [one_batch], "12.2": [averages_weights]}
