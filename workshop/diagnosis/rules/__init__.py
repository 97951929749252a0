"""The rules: one function for each cause that `workshop why` can name.

The first rule that finds something is the answer, so what is certain stands before what is likely.
An error whose words name its reason is a row of errors.toml.
"""

from workshop.diagnosis.evidence import Evidence
from workshop.diagnosis.rules import collectives, errors, messages, silent, slow
from workshop.diagnosis.rules.rule import Finding, Rule

RULES: tuple[Rule, ...] = (
    # An error that names its reason, a rank that died
    errors.known_error,
    errors.sizes_on_the_wire,
    errors.killed,
    errors.horovod_stall,
    errors.server_not_there,
    errors.raised,
    # Calls that differ, a rank that did not come
    collectives.uneven,
    collectives.mismatched,
    collectives.somebody_missing,
    collectives.left_alone,
    collectives.never_met,
    collectives.group_not_made,
    collectives.all_in_one_call,
    collectives.no_batch,
    messages.unrecorded_wait,
    errors.gave_up,
    # No error, and wrong
    silent.not_a_number,
    silent.weights_differ,
    silent.weights_do_not_change,
    silent.set_epoch_forgotten,
    silent.sampler_seeds,
    silent.split_seeds,
    silent.same_data,
    silent.batch_norm,
    # Slow
    slow.slower_and_slower,
    slow.slow_input,
    slow.straggler,
    slow.retraced,
    slow.oversubscribed,
    slow.averaged_again,
    slow.tiny_buckets,
    slow.narrow_link,
    silent.same_inputs,  # which do not hide why it is slow
    # A job whose instances do not know each other
    silent.alone,
    errors.failed,
)


def find(evidence: Evidence) -> list[Finding]:
    """All that the rules find, the likeliest cause first."""
    return [finding for rule in RULES for finding in rule.findings(evidence)]
