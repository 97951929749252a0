"""Plausible wrong answers to the exercises of lesson 03, and what each must be told."""


def right_rates(compute, transfer, **other):
    n, slowest = len(compute), max(compute)
    return {
        "sync": n / (slowest + 2 * n * transfer),
        "async": min(sum(1 / (seconds + 2 * transfer) for seconds in compute), 1 / transfer),
        "ring": n / (slowest + 2 * (n - 1) / n * transfer),
    } | other


def waits_for_the_mean(compute, transfer):
    n = len(compute)
    sync = n / (sum(compute) / n + 2 * n * transfer)
    return right_rates(compute, transfer, sync=sync)


def links_of_their_own(compute, transfer):
    return right_rates(compute, transfer, sync=len(compute) / (max(compute) + 2 * transfer))


def without_a_bound(compute, transfer):
    rates = right_rates(compute, transfer)
    return rates | {"async": sum(1 / (seconds + 2 * transfer) for seconds in compute)}


def whole_messages(compute, transfer):
    n = len(compute)
    return right_rates(compute, transfer, ring=n / (max(compute) + 2 * (n - 1) * transfer))


def only_the_best(compute, transfer):
    return max(right_rates(compute, transfer).values())


def one_way(parameters, workers, servers):
    return 4 * -(-parameters // servers) * workers, workers * servers


def one_worker(parameters, workers, servers):
    return 8 * -(-parameters // servers), workers * servers


def all_servers(parameters, workers, servers):
    return 8 * parameters * workers, workers * servers


def rounded_down(parameters, workers, servers):
    return 8 * (parameters // servers) * workers, workers * servers


def one_connection_each(parameters, workers, servers):
    return 8 * -(-parameters // servers) * workers, workers + servers


def serve_async(server, workers, steps, s):
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps * len(workers)):
        worker, gradient = server.receive_gradient()
        server.apply(gradient)
        server.send_weights(worker)


def serve_sync(server, workers, steps, s):
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps):
        for worker in workers:
            server.apply(server.receive_gradient(worker)[1])
        for worker in workers:
            server.send_weights(worker)


def bounded(server, workers, steps, s, *, times=1, release=True):
    pushed, waiting = dict.fromkeys(workers, 0), set()
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps * len(workers)):
        worker, gradient = server.receive_gradient()
        server.apply(times * gradient)
        pushed[worker] += 1
        waiting.add(worker)
        for waits in sorted(waiting) if release else [worker]:
            if pushed[waits] - min(pushed.values()) <= s:
                server.send_weights(waits)
                waiting.remove(waits)
    for worker in waiting:
        server.send_weights(worker)


def half_of_each(*served):
    bounded(*served, times=0.5)


def only_who_pushed(*served):
    bounded(*served, release=False)


def who_waits_is_forgotten(server, workers, steps, s):
    pushed = dict.fromkeys(workers, 0)
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps * len(workers)):
        worker, gradient = server.receive_gradient()
        server.apply(gradient)
        pushed[worker] += 1
        if pushed[worker] - min(pushed.values()) <= s:
            server.send_weights(worker)


WRONG = {
    "03.1": [
        (waits_for_the_mean, "waits for the slowest worker, not for the mean"),
        (links_of_their_own, "pass the server's link, one after the other"),
        (without_a_bound, "at most 1 / transfer messages"),
        (whole_messages, "1 / N of the weights"),
        (only_the_best, "has not the keys"),
    ],
    "03.2": [
        (one_way, "one way"),
        (one_worker, "serves them all"),
        (all_servers, "Each has a part"),
        (rounded_down, "rounded up"),
        (one_connection_each, "each talks to each"),
    ],
    "03.3": [
        (serve_async, r"worker \d gets new weights although it is 2 steps ahead"),
        (serve_sync, "waits all the same"),
        (half_of_each, "apply each gradient once, whole"),
        (only_who_pushed, "wait for each other forever.*may release others"),
        (who_waits_is_forgotten, "wait for each other forever.*whoever still waits"),
    ],
}
