"""Wrong answers to lesson 04's exercises, as changes of the solutions, and what is said of them."""

BROADCAST = "hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)"
SHARD = {"slice(hvd.rank(), None, hvd.size())": "slice(None)"}
SAVE = {"if hvd.rank() == 0:": "if True:"}
TAPE = {"        tape = hvd.DistributedGradientTape(tape)\n": ""}
ALONE = {"hvd.init()": "", "pin(hvd.local_rank())": "", BROADCAST: "", **SHARD, **TAPE, **SAVE}

WRONG = {
    "04.1": [
        (TAPE, "TODO 5: the ranks began with equal weights and drifted"),
        (SHARD, "TODO 4: 384 images were seen by both"),
        (ALONE, "TODO 1: Horovod was not"),
        ({"hvd.local_rank()": "hvd.rank()"}, "TODO 2: you pinned by rank"),
        ({BROADCAST: ""}, "TODO 3: at the first step the ranks have different"),
        ({"SGD(learning_rate": "SGD(2 * learning_rate"}, "one process gets other weights"),
        (SAVE, "TODO 6: rank 0 must save once"),
    ],
    "04.2": [
        ({"single + (single * size - single) * share": "single * size * share"}, "learns nothing"),
        ("return single * size", "no warm-up"),
        ({"min(1.0, step / warmup_steps)": "step / warmup_steps"}, "stay where it is"),
        ({" if warmup_steps else 1.0": ""}, "ZeroDivisionError"),
    ],
    "04.3": [
        ({'kinds("weights_after_first_step")': "0"}, "lacks broadcast, and you said 'tape'"),
        (
            {"in ranks}": "in ranks[:2]}", "< len(ranks)": "< 2"},
            "lacks broadcast, and you said None",
        ),
        (
            {"in ranks}": "in (ranks[0], ranks[-1])}", "< len(ranks)": "< 2"},
            "lacks broadcast, and you said None",
        ),
        ({'return "shard"': "return None"}, "the work was done twice"),
    ],
}
