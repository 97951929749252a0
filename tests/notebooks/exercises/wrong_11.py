"""Wrong answers to lesson 11's exercises, as changes of the solutions, and what is said of them."""

GATHERED_ONCE = {
    "ctx.save_for_backward(x, shard)\n            return x @ gathered(shard).T": (
        "weight = gathered(shard)\n"
        "            ctx.save_for_backward(x, shard, weight)\n"
        "            return x @ weight.T"
    ),
    "x, shard = ctx.saved_tensors": "x, shard, _ = ctx.saved_tensors",
}
OF_ITS_OWN_BATCH = "part = (grad.T @ x).chunk(n)[dist.get_rank()] * n"

WRONG = {
    "11.1": [
        (
            {'8 if way == "hsdp" else 8 * instances': "8 * instances"},
            "HSDP divides by the ranks of one instance",
        ),
        ({'"zero1": 12': '"zero1": 8'}, "weights of 4 bytes are optimizer state"),
        ({'"zero1": 12, "zero2": 14': '"zero1": 16, "zero2": 16'}, "That is ZeRO-3"),
        ("return 4 * billions", "16 bytes for each parameter"),
    ],
    "11.2": [
        ({"part / n": "part"}, "times too large. A reduce-scatter adds"),
        ({"return grad @ gathered(shard)": "return grad @ gathered(shard) / n"}, "not divided"),
        (
            {"dist.reduce_scatter_tensor(part, grad.T @ x)": OF_ITS_OWN_BATCH},
            "of this rank's batch only",
        ),
        (GATHERED_ONCE, "gather it again in backward"),
        (
            {"Layer.apply(x, shard)": "x @ gathered(shard.detach()).T"},
            "no gradient in x or shard",
        ),
        ("return x @ shard.T", "another output than"),
    ],
    "11.3": [
        ({" and models * 2 * billions <= budget": ""}, "sends .* GB over the link"),
        ({"models * 2 * billions": "models * billions"}, "sends .* GB over the link"),
        ({" + 10 <= 80": " <= 80"}, "and 10 for activations: more than 80"),
        ('return "zero3"', "comes first|over the link"),
        ({"if instances > 1 else 0": ""}, "you said '(none|zero3)'"),
        ({"if instances > 1:": "if True:"}, "On one instance HSDP is ZeRO-3"),
        ({"2 * (instances - 1) / instances": "2 * around"}, "you said 'none'"),
    ],
}
