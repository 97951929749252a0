"""Wrong answers to lesson 00's exercises, as changes of the solutions, and what is said of them."""


def pattern(text):
    return f"return {text!r}"


RAISES = "if '--epoch' in arguments:\n        raise ValueError\n    return parser"  # one of its own
RIGHT = {"00.2": [{"return parser": RAISES}]}
WRONG = {
    "00.1": [
        ("return None", "Return the regular expression"),
        (pattern(r'"train_loss": [0-9.eE+-]+'), "It has 0 groups"),
        (pattern(r'"train_loss": ([0-9.]+)'), "finds '4.1' .* The loss there is 4.1e-05"),
        (pattern(r'"train_loss": (([0-9]+)\.[0-9]+)'), "It has 2 groups"),
        (pattern(r'"train_loss": (\d+\.\d+)'), "finds nothing in the line .*: 2,"),
        (pattern(r'"train_loss": (.+)'), "must take the whole number and nothing else"),
        (pattern(r'train_loss": ([0-9.eE+-]+)'), "finds '0.11' .* The loss there is 0.2153"),
        (pattern(r"train_loss: ([0-9.eE+-]+)"), "finds nothing"),
        (pattern(r'"train_loss": ([0-9'), "is not a regular expression"),
        (pattern(r'"train_loss": (.+?),'), 'nothing in the line `{"event": "epoch", "train_loss"'),
    ],
    "00.2": [
        (
            {'environment.get("SM_CHANNEL_TRAINING", "data/training")': '"data/training"'},
            "training is 'data/training'; it must be '/data/a'",
        ),
        ({"parse_args(arguments)": "parse_known_args(arguments)[0]"}, "accepts --epoch, a typing"),
        ({"allow_abbrev=False": ""}, "accepts --epoch, a typing mistake"),
        ({"type=int, ": ""}, "epochs is '5', a string"),
        ({'    parser.add_argument("--model_dir")\n': ""}, "unrecognized arguments: --model_dir"),
        (
            {
                '    parser.add_argument("--model_dir")\n': "",
                '"--save-to"': '"--model_dir", dest="save_to"',
            },
            "save_to is 's3://b/k'",
        ),
        ('return {"training": "/data/a"}', "has no training. Return what parse_args"),
        ('return argparse.Namespace(training="/data/a")', "has no save_to"),
    ],
}
