"""Plausible wrong answers to lesson 06's exercises, and what the check says of each."""


def to_itself(group, rules, protocols=("-1",)):
    return any(
        rule["IpProtocol"] in protocols
        and group["GroupId"] in [pair["GroupId"] for pair in rule["UserIdGroupPairs"]]
        for rule in rules
    )


def only_in(group):
    return to_itself(group, group["IpPermissions"])


def only_out(group):
    return to_itself(group, group["IpPermissionsEgress"])


def tcp_will_do(group):
    both = group["IpPermissions"], group["IpPermissionsEgress"]
    return all(to_itself(group, rules, ("-1", "tcp")) for rules in both)


def anywhere_will_do(group):
    anywhere = any(
        rule["IpProtocol"] == "-1" and rule["IpRanges"] for rule in group["IpPermissionsEgress"]
    )
    return only_in(group) and (anywhere or only_out(group))


def any_group(group):
    both = group["IpPermissions"], group["IpPermissionsEgress"]
    return all(
        any(rule["IpProtocol"] == "-1" and rule["UserIdGroupPairs"] for rule in rules)
        for rules in both
    )


def one_rule_of_two(group):
    """A rule for every protocol and a rule to the group itself; they may be two rules."""
    both = group["IpPermissions"], group["IpPermissionsEgress"]
    return all(
        any(rule["IpProtocol"] == "-1" for rule in rules)
        and any(pair["GroupId"] == "sg-1" for rule in rules for pair in rule["UserIdGroupPairs"])
        for rules in both
    )


def first_rule_only(group):
    both = group["IpPermissions"][:1], group["IpPermissionsEgress"][:1]
    return all(to_itself(group, rules) for rules in both)


ANSWER = {
    "A": ("security group", 2),
    "B": ("NAT gateway", 2),
    "C": ("late rank", 4),
    "D": ("no EFA", 2),
    "E": ("interface endpoint", 3),
}


def said_of(job, cause, line=2):
    """An answer that is right but for one job."""

    def causes():
        return ANSWER | {job: (cause, line)}

    return causes


def one_missing():
    return {job: cause for job, cause in ANSWER.items() if job != "E"}


def without_lines():
    return {job: cause for job, (cause, _) in ANSWER.items()}


def right_mbit(megabytes, divided):
    return 2 * megabytes * 8 / divided


def megabytes_a_second(fixed, divided, megabytes, instances):
    return right_mbit(megabytes, divided) / 8


def fixed_counts(fixed, divided, megabytes, instances):
    return right_mbit(megabytes, fixed + divided)


def all_is_saved(fixed, divided, megabytes, instances):
    return right_mbit(megabytes, divided) * (instances - 1) / instances


def nothing(fixed, divided, megabytes, instances):
    return None


RIGHT = {"06.2": [said_of("A", "security group", 4), said_of("C", "late rank", 5)]}
WRONG = {
    "06.1": [
        (only_in, "out only to port 443"),
        (only_out, "let out and not in"),
        (tcp_will_do, "only of TCP"),
        (anywhere_will_do, "which EFA does not take"),
        (any_group, "another group"),
        (one_rule_of_two, "itself only to port 22"),
        (first_rule_only, "among other rules"),
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
        (one_missing, "a dict with the keys"),
        (without_lines, "a cause and a line's number"),
    ],
    "06.3": [
        (megabytes_a_second, "in MB/s"),
        (fixed_counts, "it cancels"),
        (all_is_saved, "save only"),
        (nothing, "was expected"),
    ],
}
