"""Check the course's texts; print each finding as path:line: message.

python tests/lint
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the kit, where it is not installed

import glossary_rules
import instructor_rules
import lesson_rules
import translation_rules


def findings() -> list[str]:
    """Everything that the rules find, in the order of the files."""
    found = {
        finding
        for rules in (lesson_rules, glossary_rules, instructor_rules, translation_rules)
        for finding in rules.findings()
    }
    return [str(finding) for finding in sorted(found)]


if __name__ == "__main__":
    print(*(found := findings()), sep="\n", end="\n" if found else "")
    sys.exit(1 if found else 0)
