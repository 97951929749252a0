"""Run a script and note what this rank did, for grade.py: traced.py FOLDER STEP SCRIPT ...

Noted at each step, so that neither what a script prints nor where it ends is believed alone: which
images went through the model, and the weights after the optimizer's step. In STEP, counted from 0,
the last of several ranks gets other images: rank 0's weights show it if gradients come from there.
"""

import os
import runpy
import sys
import zlib

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim import optimizer as optimizers

folder, changed_step, sys.argv = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
rank, world_size = (int(os.environ.get(name, "0")) for name in ("RANK", "WORLD_SIZE"))
trace = {"images": [], "weights": [], "start": None, "momentum": {}, "saves": 0}
batch, save = [], torch.save


def flat(tensors):
    return torch.cat([tensor.detach().reshape(-1).double() for tensor in tensors])


def parameters(optimizer):
    return [tensor for group in optimizer.param_groups for tensor in group["params"]]


def momentum(optimizer):
    """None where the optimizer remembers nothing yet."""
    buffers = [optimizer.state[tensor].get("momentum_buffer") for tensor in parameters(optimizer)]
    return None if any(buffer is None for buffer in buffers) else flat(buffers)


def note_images(module, inputs):
    if "Classifier" in (each.__name__ for each in type(module).__mro__) and torch.is_grad_enabled():
        batch.extend(zlib.crc32(image.numpy().tobytes()) for image in inputs[0])
        if len(trace["images"]) == changed_step and 0 < rank == world_size - 1:
            return (255 - inputs[0],)
    return None


def before_step(optimizer, *_):
    if trace["start"] is None:
        trace["start"] = flat(parameters(optimizer))
        trace["momentum"]["start"] = momentum(optimizer)


def after_step(optimizer, *_):
    trace["images"].append(tuple(batch))
    batch.clear()
    trace["weights"].append(flat(parameters(optimizer)))
    trace["momentum"]["end"] = momentum(optimizer)


def counted_save(*args, **options):
    trace["saves"] += 1
    return save(*args, **options)


register_module_forward_pre_hook(note_images)
optimizers.register_optimizer_step_pre_hook(before_step)
optimizers.register_optimizer_step_post_hook(after_step)
torch.save = counted_save
runpy.run_path(sys.argv[0], run_name="__main__")
save(trace, f"{folder}/rank-{rank}.pt")
