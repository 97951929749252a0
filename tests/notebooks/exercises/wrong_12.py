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
        ({"8 * sent": "sent"}, "too small: the link is given in bits"),
        (
            {
                '(step["DDP"] - step["alone"]) / step["alone"]': 'step["alone"] / step["DDP"]',
            },
            r"\(DDP's step - alone's\) / alone's",
        ),
        (
            {'(step["DDP"] - step["alone"]) / step["alone"]': 'step["DDP"] / step["alone"]'},
            r"1 \+ r. r counts only",
        ),
        (
            {"return r,": "return 1 / r,"},
            "upside down",
        ),
        (  # all compute as long as one rank alone
            {"way: fast + 8": 'way: ways["alone"][1] + 8'},
            "is its own on the fast link",
        ),
        ({"min(seconds, key=seconds.get)": "min(step, key=step.get)"}, "gets to the goal"),
        (
            {"min(seconds, key": 'min(set(seconds) - {"alone"}, key'},
            "one rank alone is one of them",
        ),
        (  # the right r, and compression for nothing
            {"steps * step[way]": 'steps * (step[way] - ways[way][1] + ways["alone"][1])'},
            "DDP gets to the goal first, not PowerSGD.*its own step",
        ),
        ({"return r, min(seconds, key=seconds.get)": "return r"}, "are not two values"),
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
