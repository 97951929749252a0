"""Wrong answers to lesson 07's exercises, as changes of the solutions, and what is said of them."""

VERSION = 'job["version"] <= (2, 5, 1)'
ENDS = "max(end for kind, _, end in spans if kind == {!r})"
EACH_BUCKET = "sum(start <= left and right <= end for _, start, end in spans)"
# One rank of each instance sends for all: as many bytes over the instance's link.
BY_LEADERS = """first = dist.get_global_rank(intra_node, 0)
dist.reduce(tensor, first, group=intra_node)
if dist.get_rank() == first:
    dist.all_reduce(tensor, group=inter_node)
dist.broadcast(tensor, first, group=intra_node)
return tensor"""

RIGHT = {"07.6": [BY_LEADERS]}
WRONG = {
    "07.1": [
        ('return "smddp"', "No image after PyTorch 2.5.1"),
        ({VERSION: '".".join(map(str, job["version"])) <= "2.5.1"'}, "compare tuples"),
        ({' and not job["own_groups"]': ""}, "no new_group"),
    ],
    "07.2": [
        ({"bool(others) and 2 * thin < rows * columns": "True"}, "travel as they are"),
        ({"2 * thin <": "thin <"}, "twice the numbers"),
        ({"return 4 * numbers": "return numbers"}, "4 bytes"),
        ({"bool(others)": "len(others) == 1"}, "but the first are the columns"),
    ],
    "07.3": [
        (
            'return sum(end - start for kind, start, end in spans if kind == "all-reduce")',
            "computing hides some",
        ),
        (
            f"return max(0, {ENDS.format('all-reduce')} - {ENDS.format('compute')})",
            "nothing is computed",
        ),
        (
            {'if active == {"all-reduce"}': 'if "compute" not in active'},
            "is sent and nothing",
        ),
        ({"+= right - left": f"+= (right - left) * {EACH_BUCKET}"}, "expose that time once"),
    ],
    "07.4": [
        (
            "return sum(ms for ms, _ in layers) + alpha + beta * sum(size for _, size in layers)",
            "while later layers compute",
        ),
        ({"alpha + beta": "beta"}, "With one bucket"),
        ({" or number == len(layers) - 1": ""}, "at the end of backward"),
        ({"max(sent, computed)": "computed"}, "the one before it is sent"),
    ],
    "07.5": [
        ({"lambda case: abs(errors[case])": "errors.get"}, "Compare absolute values"),
        ({"return case, errors[case]": "return case, abs(errors[case])"}, "the sign"),
        ({"n_bytes / ranks": "n_bytes"}, "1 / N of the tensor"),
        ({"return case, errors": "return errors"}, "as a pair"),
    ],
    "07.6": [
        ("dist.all_reduce(tensor)\nreturn tensor", "without a group"),
        (
            "for group in (intra_node, inter_node):\n"
            "    dist.all_reduce(tensor, group=group)\nreturn tensor",
            "are enough",
        ),
        ("dist.all_reduce(tensor, group=intra_node)\nreturn tensor", "nothing went inter-node"),
        ({"return torch.cat(parts)": "return part"}, "join them"),
        ("dist.all_reduce(tensor, group=intra_node)", "Return a tensor"),
    ],
}
