"""Wrong answers to lesson 05's exercises, as changes of the solutions, and what is said of them."""

FITS = "int(budget / at_most)"
ALWAYS = {"not noise.min() <= ratio.median() <= noise.max()": "True"}
MEDIANS = {"(ratio < 1).all()": "ratio.median() < 1", "(ratio > 1).all()": "ratio.median() > 1"}
OF_MEDIANS = 'seconds[name].median() / seconds["A"].median()'
RANGES = """low, high = seconds.min(), seconds.max()
faster = (high < low["A"]).drop(["A", "A again"])
return {name: "faster" if shown else "no difference shown" for name, shown in faster.items()}"""

RIGHT = {
    "05.1": [{"return int(": "import numpy as np\n\n    return np.int64("}],
    "05.2": [{'"-x NCCL': '"--verbose -x NCCL'}],
}
WRONG = {
    "05.1": [
        ({"budget / at_most": "budget / usd_per_hour"}, "the price is for an hour"),
        ({FITS: "-int(-budget // at_most)"}, "more than the budget of"),
        ({FITS: f"max(1, {FITS})"}, "Then the answer is 0"),
        ({FITS: "budget / at_most"}, "whole numbers"),
        ({"(max_run + 120)": "max_run"}, "may take 120 s to stop"),
        ({FITS: f"max(0, {FITS} - 1)"}, "still fit the budget"),
    ],
    "05.2": [
        ({'"mpi"': '"parameter_server"'}, "does not start mpirun"),
        ({"slots,": "slots - 1,"}, "at most the number of slots"),
        ({'"custom_mpi_options"': '"custom_mpi_option"'}, "silently ignores it"),
        ({'"-x NCCL': '"--NCCL'}, "only SageMaker's toolkit knows it"),
        ({'"-x NCCL_DEBUG=INFO"': "'-x \"NCCL_DEBUG=INFO\"'"}, "leave them out"),
        ({"slots,": "2,"}, "use every slot"),
        ({'            "custom_mpi_options": "-x NCCL_DEBUG=INFO",\n': ""}, "is missing"),
    ],
    "05.3": [
        (  # the worst accuracy
            'return min(logs, key=lambda name: json.loads(logs[name][2])["test_accuracy"])',
            "one hash. You said 'horovod-1'",
        ),
        ({"len(hashes) > 1": "len(hashes) == 4"}, "whichever ranks agree"),
        ({'== "weights"': '== "weights" and r["rank"] < 2'}, "whichever ranks agree"),
        ({"len(hashes) > 1": "len(hashes) == 1"}, "more than one different hash"),
    ],
    "05.4": [
        (ALWAYS | MEDIANS, "C is 'no difference shown'"),
        (ALWAYS, "two runs of A differ by 4 %"),
        (MEDIANS, "In one round it was slower"),
        ({"ratio.median()": OF_MEDIANS}, "C is .no difference shown"),
        (RANGES, "take ratios within a round"),
        ({'.drop(["A", "A again"])': '.drop("A")'}, "a dictionary with the keys B, C, D, E"),
    ],
}
