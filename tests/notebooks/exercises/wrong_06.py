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


def ring(ranks, megabytes, gbit):
    return 2 * (ranks - 1) / ranks * megabytes * 8e6 / (gbit * 1e9)


def bytes_for_bits(megabytes, instances, ranks_each, gbit):
    return ring(instances * ranks_each, megabytes, gbit) / 8 if instances > 1 else 0


def instances_for_ranks(megabytes, instances, ranks_each, gbit):
    return ring(instances, megabytes, gbit)


def alone_too(megabytes, instances, ranks_each, gbit):
    return ring(instances * ranks_each, megabytes, gbit)


def once_around(megabytes, instances, ranks_each, gbit):
    return ring(instances * ranks_each, megabytes, gbit) / 2 if instances > 1 else 0


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
        (bytes_for_bits, "8 bits each"),
        (instances_for_ranks, "number of ranks, not of instances"),
        (alone_too, "nothing crosses its link"),
        (once_around, "goes round twice"),
    ],
    "06.3": [
        (megabytes_a_second, "in MB/s"),
        (fixed_counts, "it cancels"),
        (all_is_saved, "save only"),
        (nothing, "was expected"),
    ],
}
