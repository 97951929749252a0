"""CloudFormation templates are data: their YAML is read without making Python objects.

moto 5.2.5 reads them with yaml.Loader, which calls whatever function a tag such as
!!python/object/apply:os.system names. `guard` gives moto's CloudFormation a loader that knows
YAML's own types and CloudFormation's short tags (!Ref, !Sub, !GetAtt, ...) and nothing else.
"""

from __future__ import annotations

import types
from typing import Any

import yaml
from moto.cloudformation import models, responses
from moto.cloudformation.utils import yaml_tag_constructor
from yaml.constructor import ConstructorError

from local_sagemaker.protocol.errors import AwsError

SERVES = "AWS::SageMaker::Endpoint"  # moto would make one that answers nothing


class TemplateLoader(yaml.SafeLoader):
    """YAML's own types, and tags that begin with one exclamation mark."""


TemplateLoader.add_multi_constructor(
    "!", lambda loader, name, node: yaml_tag_constructor(loader, f"!{name}", node)
)


def guard() -> None:
    """Make moto read templates so. Running it again changes nothing."""
    for module in (models, responses):
        module.yaml = types.SimpleNamespace(
            Loader=TemplateLoader, load=_load, add_multi_constructor=lambda *_: None
        )


def _load(template: Any, Loader: type) -> Any:
    try:
        found = yaml.load(template, Loader)  # a SafeLoader
    except ConstructorError as error:
        raise AwsError(
            "ValidationError", f"Template format error: YAML not well-formed. {error.problem}"
        ) from error
    for name, one in _resources(found):
        if isinstance(one, dict) and one.get("Type") == SERVES:
            raise AwsError(
                "ValidationError",
                f"{name}: the emulator makes no {SERVES} of a template. Leave it out, and "
                "call create_endpoint with the stack's EndpointConfig.",
            )
    return found


def _resources(template: Any) -> list[tuple[str, Any]]:
    found = template.get("Resources") if isinstance(template, dict) else None
    return list(found.items()) if isinstance(found, dict) else []
