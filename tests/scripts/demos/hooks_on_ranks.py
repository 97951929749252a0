"""What the tests of the communication hooks run on every rank. torch is imported there only."""


def gradients(settings, steps, per_instance):
    """Gradients after each step, as one vector a step. settings: of `parallel` and `register`."""
    import torch
    from collectives_on_ranks import placed
    from torch.nn.functional import cross_entropy

    model, optimizer = _ddp(settings)
    generator = torch.Generator().manual_seed(torch.distributed.get_rank())
    gradients_of = []
    with placed(per_instance):
        for _ in range(steps):
            images = torch.randint(256, (4, 8, 8, 1), generator=generator, dtype=torch.uint8)
            labels = torch.randint(10, (4,), generator=generator)
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            gradients_of.append(
                torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
            )
            optimizer.step()
    return gradients_of


def refused(settings, per_instance):
    """What backward() says where the all-reduce fails."""
    try:
        gradients(settings, 1, per_instance)
    except Exception as error:
        return str(error)


def _ddp(settings):
    """A model that every rank has alike, wrapped, with the hook of the settings; its optimizer."""
    import torch
    from common.hooks_torch import parallel, register
    from common.model_torch import Classifier

    options = {"all_reduce": "default", "bucket_megabytes": None} | settings
    torch.manual_seed(0)
    model = Classifier((8, 8, 1), hidden_units=256)
    wrapped = parallel(model, options.pop("bucket_megabytes"))
    register(wrapped, **options)
    return wrapped, torch.optim.SGD(model.parameters(), 0.05)
