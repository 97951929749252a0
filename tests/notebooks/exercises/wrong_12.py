"""Wrong answers to lesson 12's exercises, as changes of the solutions, and what is said of them."""

MEAN = "(mse_loss(parallel(inputs), targets) / len(batches))"
LAST = f"    inputs, targets = last\n    {MEAN}.backward()\n"
LOSS = "mse_loss(parallel(inputs), targets)"
STEP = f"optimizer.zero_grad()\n    {LOSS}.backward()\n    optimizer.step()"
# DDP decides in the forward pass: it sends each time, as documented.
ONLY_BACKWARD_INSIDE = f"""optimizer.zero_grad()
for number, (inputs, targets) in enumerate(batches, 1):
    loss = {MEAN}
    if number < len(batches):
        with parallel.no_sync():
            loss.backward()
    else:
        loss.backward()
optimizer.step()"""
WRONG = {
    "12.1": [
        (  # sends each
            {"with parallel.no_sync():": "if True:"},
            "DDP averaged 4 times.*all batches but the last",
        ),
        (  # never divides
            {
                f"first:\n            {MEAN}": f"first:\n            {LOSS}",
                LAST: LAST.replace(MEAN, LOSS),
            },
            "a sum of means. Divide each loss",
        ),
        (  # never sends
            {"*first, last = batches": "first = batches", LAST: ""},
            r"nothing was averaged.*outside of no_sync\(\)",
        ),
        (
            f"for inputs, targets in batches:\n    {STEP}",
            r"took 4 steps.*optimizer.step\(\) once",
        ),
        (
            f"for inputs, targets in batches[-1:]:\n    {STEP}",
            "other weights than those of one large batch",
        ),
        (ONLY_BACKWARD_INSIDE, "forward and backward, inside"),
    ],
    "12.2": [
        ({"8 * sent": "sent"}, "8 times too small"),
        ({'exchange["DDP"] / alone': 'alone / exchange["DDP"]'}, "upside down"),
        ({"return r, 1 + r,": "return r, r,"}, "a step without its exchange is 1"),
        ({"min(seconds, key=seconds.get)": "min(exchange, key=exchange.get)"}, "gets to the goal"),
        ({"steps * (alone": "(alone"}, "gets to the goal first, not alone"),
        (
            {"min(seconds, key": 'min(set(seconds) - {"alone"}, key'},
            "one rank alone is one of them",
        ),
        ({"return r, 1 + r, min(seconds, key=seconds.get)": "return r"}, "are not three values"),
    ],
    "12.3": [
        ({"left_out.abs()": "left_out"}, r"-5 is larger in size than 3: choose by abs\(\)"),
        (  # forgets
            {"    left_out += gradient\n": "", "left_out.abs()": "gradient.abs()"}
            | {"left_out[places].clone()": "gradient[places]", "    left_out[places] = 0\n": ""},
            "what was not sent is lost",
        ),
        ({"    left_out[places] = 0\n": ""}, "would be sent again: set it to 0"),
        (  # chooses before it adds
            {"    left_out += gradient\n": "", "left_out.abs()": "gradient.abs()"}
            | {"values = left_out": "left_out += gradient\n    values = left_out"},
            "add left_out before you choose",
        ),
        (  # what is returned is taken after it was set to 0
            {
                "    values = left_out[places].clone()\n": "",
                "places, values\n": "places, left_out[places]\n",
            },
            "the values are not those of the places",
        ),
        ({"return places, values": "return values"}, "is not two tensors"),
    ],
}
RIGHT = {
    "12.1": [  # where they fit into memory together
        "import torch\n"
        "inputs, targets = (torch.cat(parts) for parts in zip(*batches, strict=True))\n"
        f"for _ in range(1):\n    {STEP}"
    ],
    "12.2": [  # written otherwise
        {"8 * sent / (mbit * 1e6)": "sent / (mbit * 125_000)"}
    ],
}
