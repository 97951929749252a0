"""Wrong answers to lesson 09's exercises, as changes of the solutions, and what is said of them."""

SHARED = "files[local_rank::local_size] if sharded"
REST = "len(names) % (local_size if sharded else world_size)"
CUT_OFF = 'raise ValueError(f"The file ends in the middle of record {len(records)}.")'

RIGHT = {"09.2": [{"sorted(names)": "tuple(sorted(names))"}]}
WRONG = {
    "09.1": [
        ({"(3, 32, 32).transpose(1, 2, 0)": "(32, 32, 3)"}, "pixels are scrambled"),
        ({"record, np.uint8, offset=1": "record[:-1], np.uint8"}, "the label"),
        ({"transpose(1, 2, 0)": "transpose()"}, "exchanged"),
        ({".transpose(1, 2, 0)": ""}, "The shape is"),
        ({"(1, 2, 0)": "(1, 2, 0)[..., ::-1]"}, "Red and blue"),
        ({"(1, 2, 0)": "(1, 2, 0).astype(np.int64)"}, "as int64; uint8 was asked for"),
    ],
    "09.2": [
        (
            {f"{SHARED} else ": ""},
            "ShardedByS3Key.*nobody reads.*divided among the instances already",
        ),
        (
            {" if sharded else files[rank::world_size]": ""},
            "FullyReplicated.*times.*rank among all ranks",
        ),
        ({"sorted(names)": "names"}, "FullyReplicated.*(sort|sorted)"),
        ("return list(names)", "is read 4 times"),
        ({"sorted(names)": f"sorted(names)[{REST} :]"}, "a remainder must not be left out"),
        ({SHARED: "files if sharded"}, "ShardedByS3Key.*share its folder"),
        ('return "part-00000.npz"', "return a list"),
        (
            "return [] if (local_rank if sharded else rank) else sorted(names)",
            "another few or none: share them evenly",
        ),
    ],
    "09.3": [
        ({"if at > len(content)": "if False"}, "and you returned .* raise Value"),
        ({CUT_OFF: CUT_OFF.replace("Value", "Index")}, "raise ValueError, not Index"),
        ({"return records": "return sum(map(len, records))"}, "return a list of bytes"),
        ({"first + length]": "first + length + 4]"}, "leave out both checksums"),
        ({"first, at = at + 12": "first, at = at + 8"}, "begins 12 bytes after"),
        ({CUT_OFF: "return []"}, "raise ValueError"),
    ],
}
