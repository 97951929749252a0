"""Wrong answers to lesson 03's exercises, as changes of the solutions, and what is said of them."""

LEFT_WAITING = "    for worker in waiting:\n        server.send_weights(worker)\n"

WRONG = {
    "03.1": [
        (
            {"(slowest + 2 * n * transfer)": "(sum(compute) / n + 2 * n * transfer)"},
            "waits for the slowest worker, not for the mean",
        ),
        ({"2 * n * transfer": "2 * transfer"}, "pass the server's link, one after the other"),
        ({"compute), 1 / transfer": "compute), 1e9"}, "at most 1 / transfer messages"),
        ({"(n - 1) / n * transfer": "(n - 1) * transfer"}, "1 / N of the weights"),
        ("return 1 / transfer", "has not the keys"),
    ],
    "03.2": [
        ({"2 * 4 *": "4 *"}, "one way"),
        ({"fullest * workers": "fullest"}, "serves them all"),
        ({"-(-parameters // servers)": "parameters"}, "Each has a part"),
        ({"-(-parameters // servers)": "parameters // servers"}, "rounded up"),
        ({"workers * servers": "workers + servers"}, "each talks to each"),
    ],
    "03.3": [
        ({"<= s": "<= 1e9"}, r"worker \d gets new weights although it is 2 steps ahead"),
        ({"<= s": "<= 0"}, "waits all the same"),
        ({"apply(gradient)": "apply(0.5 * gradient)"}, "apply each gradient once, whole"),
        ({"sorted(waiting)": "[worker]"}, "wait for each other forever.*may release others"),
        ({LEFT_WAITING: ""}, "wait for each other forever.*whoever still waits"),
    ],
}
