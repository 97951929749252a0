"""Wrong answers to lesson 06's exercises, as changes of the solutions, and what is said of them."""

ITSELF = 'group["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]'
ONE_RULE = 'return any(\n            rule["IpProtocol"] == "-1"\n            and '
TWO_RULES = 'return any(rule["IpProtocol"] == "-1" for rule in rules) and any(\n            '
ANSWER = {
    "A": ("security group", 2),
    "B": ("NAT gateway", 2),
    "C": ("late rank", 4),
    "D": ("no EFA", 2),
    "E": ("interface endpoint", 3),
}


def said_of(job, cause, line=2):
    """An answer that is right but for one job."""
    return f"return {ANSWER | {job: (cause, line)}}"


RIGHT = {
    "06.2": [
        said_of("A", "security group", 4),
        said_of("C", "late rank", 5),
        f"return {dict(zip(ANSWER, map(list, ANSWER.values()), strict=True))}",
    ]
}
WRONG = {
    "06.1": [
        ({' and to_itself(group["IpPermissionsEgress"])': ""}, "out only to port 443"),
        ({'to_itself(group["IpPermissions"]) and ': ""}, "let out and not in"),
        ({'== "-1"': 'in ("-1", "tcp")'}, "only of TCP"),
        ({ITSELF: f'(rule["IpRanges"] or {ITSELF})'}, "which EFA does not take"),
        ({ITSELF: 'rule["UserIdGroupPairs"]'}, "another group"),
        ({ONE_RULE: TWO_RULES}, "itself only to port 22"),
        ({"in rules\n": "in rules[:1]\n"}, "among other rules"),
    ],
    "06.2": [
        (said_of("A", "two zones"), "stops none"),
        (said_of("A", "interface endpoint"), "on another instance"),
        (said_of("A", "late rank"), "no line shows a rank that is busy"),
        (said_of("A", "security group", 1), "line 1 would be there"),
        (said_of("B", "security group"), "waits for the other instance"),
        (said_of("B", "no EFA"), "NET/Socket"),
        (said_of("C", "security group"), "40 steps together"),
        (said_of("D", "late rank"), "no line shows"),
        (said_of("D", "security group"), "isn't hung"),
        (said_of("E", "NAT gateway"), "at AWS, or on the internet"),
        (said_of("E", "broken", 3), "is none of"),
        ("return {}", "a dict with the keys"),
        (f"return {dict.fromkeys(ANSWER, 'late rank')}", "a cause and a line's number"),
    ],
    "06.3": [
        ({"* 8 / 1e6": "/ 1e6"}, "in MB/s"),
        ({"divided * (": "(fixed + divided) * ("}, "it cancels"),
        ({"divided * (1 - 1 / instances)": "divided"}, "save only"),
        ("return None", "was expected"),
    ],
}
