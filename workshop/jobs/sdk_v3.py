"""The code that starts the jobs of the lessons and of the reference with version 3 of the SDK.

It is in notebooks/sdk_v3/code/NN.py, a part `# %% NAME` for each job, and uses the names that
notebooks/sdk_v3/recipes.py defines. `python -m tools.sync` puts a part where a lesson has the line
`<!-- SDK v3: NAME -->`; `make sdk-v3` executes all of them; a test compares each request with that
of version 2.
"""

from __future__ import annotations

import json
import re
from typing import Any

from workshop.paths import SDK_V3

MARK = re.compile(r"<!-- SDK v3: (.+?) -->")
PART = re.compile(r"^# %% (.+)\n", re.MULTILINE)
SUMMARY = "<details><summary>With version 3 of the SDK</summary>"
SET_UP = "The code for version 3 in all lessons uses what [recipes.py](sdk_v3/recipes.py) defines:"
RECIPES = SDK_V3 / "recipes.py"


def code(lesson: str) -> dict[str, str]:
    """Name -> code of the parts of a lesson, or of "reference"."""
    _, *parts = PART.split((SDK_V3 / "code" / f"{lesson}.py").read_text(encoding="utf-8"))
    return dict(zip(parts[::2], parts[1::2], strict=True))


def shown() -> dict[str, str]:
    """All code that the notebooks show: "LESSON NAME" -> code, in their order."""
    lessons = sorted(path.stem for path in (SDK_V3 / "code").glob("*.py"))
    return {f"{lesson} {name}": text for lesson in lessons for name, text in code(lesson).items()}


def block(lesson: str, names: str) -> str:
    """What a notebook shows in the place of a mark; folded in a lesson.

    names: separated by "; ": of parts, or "recipes". Raises KeyError for a part that is not there.
    """
    parts = []
    for name in names.split("; "):
        if name == "recipes":
            parts += [SET_UP, _fenced(RECIPES.read_text(encoding="utf-8"))]
        else:
            parts.append(_fenced(code(lesson)[name]))
    text = "\n\n".join(parts)
    if lesson != "reference":
        return f"{SUMMARY}\n\n{text}\n\n</details>"
    return text if names == "recipes" else f"Version 3:\n\n{text}"


def _fenced(text: str) -> str:
    return f"```python\n{text.strip()}\n```"


def comparable(request: dict[str, Any]) -> dict[str, Any]:
    """A request without what is the learner's own or another in each run."""
    text = json.dumps(request)
    replaced = {
        "NAME": request["TrainingJobName"],
        "IMAGE": request["AlgorithmSpecification"]["TrainingImage"],
        "ROLE": request["RoleArn"],
        "BUCKET": request["OutputDataConfig"]["S3OutputPath"].split("/")[2],
    }
    for name, value in replaced.items():
        text = text.replace(value, name)
    return json.loads(re.sub(r'((?<="subnet-)|(?<="sg-)|(?<=/checkpoints/))[^"]+', "", text))
