"""Plausible wrong answers to lesson 01's exercises, and what they must be told."""

import numpy as np


def padded(images, rank, world_size):
    """Fills up with images from the start, as DistributedSampler does by default."""
    each = -(-images // world_size)
    return [number % images for number in range(rank, each * world_size, world_size)]


def changes_its_input(gradient, own_images, all_images):
    gradient *= own_images / all_images
    return gradient


def from_zero(step, base_rate, base_batch, global_batch_size, warmup_steps):
    """Starts the warm-up at zero."""
    scaled = base_rate * global_batch_size / base_batch
    return scaled * min(1, step / warmup_steps) if warmup_steps else scaled


def never_stops(step, base_rate, base_batch, global_batch_size, warmup_steps):
    scaled = base_rate * global_batch_size / base_batch
    done = step / warmup_steps if warmup_steps else 1
    return base_rate + done * (scaled - base_rate)


def divides_by_no_warm_up(step, base_rate, base_batch, global_batch_size, warmup_steps):
    scaled = base_rate * global_batch_size / base_batch
    return base_rate + min(1, step / warmup_steps) * (scaled - base_rate)


def square_root(step, base_rate, base_batch, global_batch_size, warmup_steps):
    """Another rule, used with other optimizers."""
    scaled = base_rate * (global_batch_size / base_batch) ** 0.5
    done = min(1, step / warmup_steps) if warmup_steps else 1
    return base_rate + done * (scaled - base_rate)


def geometric(step, base_rate, base_batch, global_batch_size, warmup_steps):
    k = global_batch_size / base_batch
    return base_rate * k ** (min(1, step / warmup_steps) if warmup_steps else 1)


WRONG = {
    "01.1": [
        (lambda n, r, w: list(range(r, n, w)), "shards have 360, 359, 359, 359 images"),
        (lambda n, r, w: np.array_split(np.arange(n), w)[r], "must be equal"),
        (padded, "image 0 is taken 2 times"),
        (lambda n, r, w: list(range(n)), "image 0 is taken 4 times"),
        (lambda n, r, w: [], "each rank gets 0; 2 would be possible"),
        (lambda n, r, w: range(r + 1, n // w * w + 1, w), "there is no image number 8"),
        (lambda n, r, w: n // w, "Return a list"),
    ],
    "01.2": [
        (lambda g, own, every: g, "only added"),
        (lambda g, own, every: g * own, "times too large: divide by all images"),
        (lambda g, own, every: g / own, "its share of all images"),
        (lambda g, own, every: float(g.mean()), r"returns the shape \(\)"),
        (changes_its_input, "changes the gradient that it gets"),
    ],
    "01.3": [
        (from_zero, "at step 0 it is 0; it must be 0.02"),
        (never_stops, "at step 16 .* After the warm-up it stays"),
        (divides_by_no_warm_up, "ZeroDivisionError"),
        (square_root, "The batch is 8 times as large"),
        (geometric, "The line must be straight"),
        (lambda step, base, *_: base, "so the rate is 8 times base_rate"),
        (lambda *_: None, "Return the learning rate"),
    ],
}
