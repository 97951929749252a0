"""What the tests of the communication hooks run on every rank. torch is imported there only."""

from unittest import mock


def gradients(flags, steps, per_instance):
    """Gradients after each step, as one vector a step. flags: of the command line."""
    import torch
    from collectives_on_ranks import placed
    from torch.nn.functional import cross_entropy

    model, optimizer = _ddp(flags)
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


def bytes_of_buckets(per_instance):
    """Bytes of each bucket that the hierarchical hook was given in two steps, in order."""
    from common.hooks_torch import TwoTier

    flags = ["--all-reduce", "hierarchical", "--bucket-megabytes", "0.01"]
    with mock.patch.object(TwoTier, "average", autospec=True, side_effect=TwoTier.average) as seen:
        gradients(flags, 2, per_instance)
    return [values.nbytes for _, values in (call.args for call in seen.mock_calls)]


def refused(flags, per_instance):
    """What backward() says where the all-reduce fails."""
    try:
        gradients(flags, 1, per_instance)
    except Exception as error:
        return str(error)


def _ddp(flags):
    """A model that every rank has alike, wrapped, with the hook of the flags; its optimizer."""
    import torch
    from common.arguments import parser_for
    from common.hooks_torch import add_flags, parallel, register
    from common.model_torch import Classifier

    parser = parser_for("x.py", "What it does.\n")
    add_flags(parser)
    args = parser.parse_args(flags)
    torch.manual_seed(0)
    model = Classifier((8, 8, 1), hidden_units=256)
    wrapped = parallel(model, args.bucket_megabytes or None)
    register(wrapped, args)
    return wrapped, torch.optim.SGD(model.parameters(), 0.05)
