"""Wrong answers to lesson 01's exercises, as changes of the solutions, and what is said of them."""

SHARE = "images, labels = images[rank::world_size], labels[rank::world_size]"
LENGTH = 'ranks[0]["first_update"] > 1.5 * ranks[0]["one_process_update"]'
TWICE = 'round(ranks[0]["first_update"] / ranks[0]["one_process_update"], 2) == 2'
MEETING = """dist.init_process_group("gloo")
            rank, world_size = dist.get_rank(), dist.get_world_size()"""
FORWARD = '"loss = cross_entropy(parallel_model(images.to(device)), labels.to(device))"'
HOOKED = '''"""
            if step == 0:
                for weight in model.parameters():
                    weight.register_hook(lambda g: (dist.all_reduce(g), g / world_size)[1])
            loss = cross_entropy(model(images.to(device)), labels.to(device))
        """'''
# Averaged by hand it rounds otherwise than DDP: the weights' hash is another one, and right.
RIGHT = {
    "01.2": ["gradient *= own_images / all_images\nreturn gradient"],  # in place, as in a training
    "01.5": [{"parallel_model = DistributedDataParallel(model)": "", FORWARD: HOOKED}],
}


def share(part):
    """Another part of the images, and of the labels."""
    return {SHARE: f"images, labels = ({part} for whole in (images, labels))"}


WRONG = {
    "01.1": [
        ({"each * world_size": "images"}, "shards have 360, 359, 359, 359 images"),
        (  # fills up with images from the start, as DistributedSampler does by default
            {
                "images // world_size": "-(-images // world_size)",
                "list(range(rank, each * world_size, world_size))": (
                    "[n % images for n in range(rank, each * world_size, world_size)]"
                ),
            },
            "image 0 is taken 2 times",
        ),
        ("return []", "each rank gets 0; 2 would be possible"),
        (
            {"range(rank, each * world_size,": "range(rank + 1, each * world_size + 1,"},
            "there is no image number 8",
        ),
        ("return images // world_size", "Return a list"),
    ],
    "01.2": [
        ("return gradient", "only added"),
        ("return gradient * own_images", "times too large: divide by all images"),
        ("return gradient / own_images", "its share of all images"),
        ("return float(gradient.mean())", r"returns the shape \(\)"),
    ],
    "01.3": [
        ({SHARE: ""}, "every rank took all 60 images"),
        ({"dist.all_reduce(weight.grad)": "pass"}, r"not averaged between backward\(\) and step"),
        ({"weight.grad /= world_size": ""}, "2 times too long: all_reduce adds"),
        (share("whole[: len(whole) // world_size]"), "30 images were taken by more than one rank"),
        (share("whole[rank :: world_size + 1]"), "20 images were taken by no rank"),
        ({"dist.broadcast(weight.data, src=0)": "pass"}, "Broadcast rank 0's weights first"),
        ({"src=0": "src=1"}, "doesn't begin with rank 0's weights"),
        ({"/= world_size": "/= 3"}, "one process gets others"),
        ("pass", "never called loss_of"),
        # The last: ranks that hang are ended.
        ({"dist.all_reduce(": "rank or dist.all_reduce("}, "wait for each other forever"),
    ],
    "01.4": [
        ('return "none"', "Run A on 2 ranks is not 'none': something in its evidence"),
        ({LENGTH: TWICE}, "Run A on 3 ranks is not"),  # only two ranks have twice the length
        ('return "sum"', "Run B on 2 ranks is not 'sum': its first update is 1.26 times"),
        ('return "no broadcast"', "start with the weights (\\w+), \\1"),
        ('return "unequal shards"', "its ranks took 60, 60 images"),
        ('return "no set_epoch"', "rank 0's two epochs have the orders"),
        ('return "inner model"', "end with (\\w+), \\1; DDP makes them equal"),
        ({LENGTH: LENGTH.replace("> 1.5 *", "!=")}, "last digits"),
        ('return "the network"', "'the network' is no answer"),
    ],
    "01.5": [
        ('return {1: "pass"}', "keys 1 to 6"),
        ({"parallel_model(images": "model(images"}, "lines 3 and 5"),
        ({'"sampler.set_epoch(epoch)"': '"sampler.set_epoch(epoch"'}, "no valid Python"),
        ({MEETING: "rank, world_size = 0, 1"}, "Default process group has not been init"),
        (
            {
                "DistributedSampler(dataset, seed=args.seed, drop_last=True)": (
                    "RandomSampler(dataset, generator=torch.Generator())"
                ),
                "sampler.set_epoch(epoch)": "sampler.generator.manual_seed(args.seed + epoch)",
            },
            "An epoch has 44 steps",
        ),
        (
            {"dist.all_reduce(mean_loss)": "", "mean_loss.item() / world_size": "mean_loss.item()"},
            "The weights are right, but the loss",
        ),
        ({"seed=args.seed": "shuffle=False"}, "Line 2: is the order shuffled"),
        ({'"sampler.set_epoch(epoch)"': '"pass"'}, "Epoch 1 is right and epoch 2 is not"),
    ],
}
