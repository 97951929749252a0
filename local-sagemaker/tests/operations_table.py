"""OPERATIONS.md: what becomes of every operation of SageMaker that botocore knows.

    python local-sagemaker/tests/operations_table.py     write it

Made from what the emulator itself reads: api/managers.py, api/operations.toml, botocore's models.
"""

import importlib.metadata
import importlib.util
import re
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

import botocore.session
import moto
from botocore.credentials import Credentials
from botocore.model import OperationModel
from moto.core.utils import camelcase_to_underscores
from moto.sagemaker.responses import SageMakerResponse
from moto.sagemakermetrics.responses import SageMakerMetricsResponse
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse

from local_sagemaker.api import offered
from local_sagemaker.api.managers import Managers
from local_sagemaker.cluster.spec import PROCESSES
from local_sagemaker.core.aws import LocalAws

PAGE = Path(__file__).parents[1] / "OPERATIONS.md"
TEMPLATE = Path(__file__).with_name("operations_page.md")
SERVICES = ("sagemaker", *offered.REST_SERVICES)
MOTO = (SageMakerResponse, SageMakerRuntimeResponse, SageMakerMetricsResponse)
RUN, KEPT, EMPTY, REFUSED = "run", "kept", "empty", "refused"


@cache
def operations() -> dict[str, OperationModel]:
    """Every operation of SERVICES, by name."""
    models = list(map(botocore.session.get_session().get_service_model, SERVICES))
    return {name: model.operation_model(name) for model in models for name in model.operation_names}


@cache
def kinds() -> dict[str, str]:
    """Operation -> what becomes of it."""
    aws = LocalAws(0, Credentials("key", "secret"))
    with tempfile.TemporaryDirectory() as folder:
        ours = Managers(Path(folder), aws, PROCESSES, 1.0).operations()
    known = dict.fromkeys(("InvokeEndpoint", *ours), RUN)
    known |= dict.fromkeys(offered.KEPT, KEPT) | dict.fromkeys(offered.EMPTY, EMPTY)
    return {name: known.get(name, REFUSED) for name in operations()}


def local_mode() -> int:
    """How many operations the clients of the SDK's local mode have."""
    place = Path(importlib.util.find_spec("sagemaker").origin).with_name("local")
    known = {camelcase_to_underscores(name) for name in operations()}
    return len(
        known & set(re.findall(r"    def (\w+)\(", (place / "local_session.py").read_text()))
    )


def page() -> str:
    names, rows = defaultdict(list), defaultdict(list)
    for name, kind in sorted(kinds().items()):
        names[kind].append(name)
        if kind == REFUSED:
            sentence = offered.refusal(name).removesuffix(f" ({name})")
            rows[sentence.removeprefix("The emulator ")].append(name)
    methods = map(camelcase_to_underscores, operations())
    return TEMPLATE.read_text().format(
        **{kind: len(operation_names) for kind, operation_names in names.items()},
        **{f"{kind}_names": ", ".join(operation_names) for kind, operation_names in names.items()},
        total=sum(map(len, names.values())),
        services=", ".join(SERVICES),
        version=botocore.__version__,
        moto=moto.__version__,
        sdk=importlib.metadata.version("sagemaker"),
        local_mode=local_mode(),
        members="\n".join(f"| {row[0]} | {row[1]} |" for row in offered.JOB_MEMBERS.items()),
        motos=sum(any(hasattr(answers, method) for answers in MOTO) for method in methods),
        rows="\n".join(
            f"| {sentence} | {', '.join(refused)} |" for sentence, refused in rows.items()
        ),
    )


if __name__ == "__main__":
    PAGE.write_text(page())
