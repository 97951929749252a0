"""Wrong answers to lesson 02's exercises, as changes of the solutions, and what is said of them."""

NAIVE_AND_TREE = """"naive": (2 * (n - 1), n_bytes),
            "tree": (2 * math.ceil(math.log2(n)), n_bytes),
"""
SCATTERED = """summed = torch.empty_like(momentum)
    dist.reduce_scatter(summed, list(gradient.chunk(world_size)))"""
UPDATED = "momentum.mul_(0.9).add_("
ADDED = "dist.all_reduce(gradient)\n    summed = gradient.chunk(world_size)[rank]"

WRONG = {
    "02.1": [
        ({" % world_size, ": ", ", "- 2) % world_size": "- 2)"}, r"there is no chunk -\d.* Use %"),
        ({"- 1)": ")", "- 2)": "- 1)"}, "It was to be chunk 0: begin with another chunk"),
        ("return rank, (rank - 1) % world_size", "they would count twice"),
        (
            "return (rank + step) % world_size, (rank + step - 1) % world_size",
            r"ranks \[.*\] only. Send on, in each step, the chunk",
        ),
        (
            {"rank - step - 1": "rank + step + 1", "rank - step - 2": "rank + step + 2"},
            r"rank \d sends chunk \d, but rank \d takes",
        ),
        ("return (rank - step - 1) % world_size", "is not two numbers"),
    ],
    "02.2": [
        (
            {"range(world_size - 1)": "range(1)", "torch.empty(": "torch.zeros("},
            r"row \d does not hold rank \d's vector.*N - 1",
        ),
        (  # as they arrive
            {"return rows": "return rows[[(rank - n) % world_size for n in range(world_size)]]"},
            r"has all vectors, but row \d is not rank \d's",
        ),
        # The last: ranks that fail or hang are ended.
        (  # torch.distributed takes its functions from there
            "from torch.distributed.distributed_c10d import all_gather\nall_gather([], vector)",
            "dist.all_gather is what you build here",
        ),
        ("dist.all_gather([], vector)", "dist.all_gather is what you build here"),
        ("dist.all_to_all_single(vector, vector)", "dist.all_to_all_single is what you build here"),
        ("dist.broadcast_object_list([vector])", "dist.broadcast_object_list is what you build"),
        ({"dist.isend": "dist.send"}, "wait for each other forever.* dist.isend"),
    ],
    "02.3": [
        ({NAIVE_AND_TREE: ""}, "Count the tree's steps|Try every algorithm"),
        ('return "ring", most', "try every number|compare with it"),
        ({'{("none", 1): compute}': "{}"}, "sends nothing: compare with it, too"),
        ({'{("none", 1): compute}': "{}", "compute / n + ": ""}, "add compute / ranks"),
        ({"math.ceil(math.log2(n))": "int(math.log2(n))"}, "a tree on 7 .* round log2 up"),
        ('return "none", 1', "divide compute by the ranks"),
        ("return 4", "is no answer"),
    ],
    "02.4": [
        ({SCATTERED: ADDED}, "calls all_reduce. Use the two halves"),
        ({"summed / world_size": "summed"}, "times too far: a reduce-scatter adds"),
        ({"mul_(0.9)": "mul_(0)"}, "trains without momentum"),
        ({UPDATED: "momentum = (0.9 * momentum + "}, "in place: yours is still zero"),
        (
            {"    dist.all_gather(parts, parts[rank].clone())\n": ""},
            "an all-gather of the weights is missing",
        ),
        ({"weights.chunk": "weights.flip(0).chunk"}, "has other weights than one process"),
    ],
}
