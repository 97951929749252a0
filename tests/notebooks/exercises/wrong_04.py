"""Wrong answers that people really give to the exercises of lesson 04."""


def conversion(init=True, pin="local", broadcast=True, shard=True, tape=True, savers=(0,), rate=1):
    """The conversion of train_tf.py with some of its TODOs, as a function for the check."""

    def train(images, labels, loss_of, pin_gpu, save, steps, global_batch_size, learning_rate):
        import horovod.tensorflow as hvd
        import tensorflow as tf
        from train_tf import build_model

        if init:
            hvd.init()
        rank, size = (hvd.rank(), hvd.size()) if init else (0, 1)
        if pin:
            pin_gpu(hvd.local_rank() if pin == "local" else rank)
        model = build_model(images.shape[1:], hidden_units=64)
        optimizer = tf.keras.optimizers.SGD(rate * learning_rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
        if broadcast:
            hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)
        for step in range(steps):
            rows = slice(step * global_batch_size, (step + 1) * global_batch_size)
            part = slice(rank, None, size) if shard else slice(None)
            with tf.GradientTape() as recorded:
                loss = loss_of(model, images[rows][part], labels[rows][part])
            wrapped = hvd.DistributedGradientTape(recorded) if tape else recorded
            gradients = wrapped.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        if rank in savers:
            save(model)
        return model

    return train


def from_zero(step, single, size, warmup_steps):
    return single * size * min(1.0, step / max(1, warmup_steps))


def at_once(step, single, size, warmup_steps):
    return single * size


def never_stops(step, single, size, warmup_steps):
    return single + single * (size - 1) * step / max(1, warmup_steps)


def divides_by_zero(step, single, size, warmup_steps):
    return single + single * (size - 1) * min(1.0, step / warmup_steps)


def looks_at_the_end_first(ranks):
    if len({row["weights_at_end"] for row in ranks}) > 1:
        return "tape"
    if len({row["weights_after_first_step"] for row in ranks}) > 1:
        return "broadcast"
    return "shard" if len({row["images_seen"] for row in ranks}) == 1 else None


def looks_at_two(ranks, other):
    """Compares rank 0 with one other rank alone."""
    for step, key in (("broadcast", "weights_after_first_step"), ("tape", "weights_at_end")):
        if ranks[0][key] != ranks[other][key]:
            return step
    return "shard" if ranks[0]["images_seen"] == ranks[other]["images_seen"] else None


def trusts_equal_weights(ranks):
    if len({row["weights_after_first_step"] for row in ranks}) > 1:
        return "broadcast"
    return "tape" if len({row["weights_at_end"] for row in ranks}) > 1 else None


WRONG = {
    "04.1": [
        (conversion(init=False, pin="", broadcast=False, tape=False), "TODO 1: Horovod was not"),
        (conversion(pin="rank"), "TODO 2: you pinned by rank"),
        (conversion(broadcast=False), "TODO 3: at the first step the ranks have different"),
        (conversion(shard=False), "TODO 4: 384 images were seen by both"),
        (conversion(tape=False), "TODO 5: the ranks began with equal weights and drifted"),
        (conversion(rate=2), "one process gets other weights"),
        (conversion(savers=(0, 1)), "TODO 6: rank 0 must save once"),
    ],
    "04.2": [
        (from_zero, "learns nothing"),
        (at_once, "no warm-up"),
        (never_stops, "stay where it is"),
        (divides_by_zero, "ZeroDivisionError"),
    ],
    "04.3": [
        (looks_at_the_end_first, "lacks broadcast, and you said 'tape'"),
        (lambda ranks: looks_at_two(ranks, 1), "lacks broadcast, and you said None"),
        (lambda ranks: looks_at_two(ranks, -1), "lacks broadcast, and you said None"),
        (trusts_equal_weights, "the work was done twice"),
    ],
}
