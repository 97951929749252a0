"""What the tests of the ways to send less run on every rank. torch is imported there only."""


def weights_after(name, settings, sizes, optimizer, rank_shift=0):
    """Train a tiny GPT by a function of less_often.methods; its weights, as one vector.

    sizes: sequences of each batch. optimizer: settings of SGD. Each rank has batches of its own.
    """
    import torch
    from less_often import methods
    from sharding import gpt

    text, characters = gpt.load_text()
    torch.manual_seed(0)
    model = gpt.GPT(characters, width=8, blocks=1)
    x, y = gpt.batch(text, sum(sizes), seed=torch.distributed.get_rank() + rank_shift)
    batches = zip(x.split(sizes), y.split(sizes), strict=True)
    sgd = torch.optim.SGD(model.parameters(), **optimizer)
    for _ in getattr(methods, name)(model, sgd, batches, **settings):
        pass
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])
