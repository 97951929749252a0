"""CloudFormation templates are data: their YAML is read without making Python objects.

moto reads them with yaml.Loader, which calls whatever function a tag such as
!!python/object/apply:os.system names (https://github.com/getmoto/moto/issues/9941). Here its
CloudFormation gets a loader that knows YAML's own types and CloudFormation's short tags (!Ref,
!Sub, !GetAtt, ...) and nothing else.
"""

from __future__ import annotations

import types
from typing import Any

import yaml
from moto.cloudformation import models, responses
from moto.cloudformation.utils import yaml_tag_constructor
from yaml.constructor import ConstructorError

from local_sagemaker.protocol.errors import AwsError

HOSTING = "AWS::SageMaker::Endpoint"  # moto would make one that answers nothing


class TemplateLoader(yaml.SafeLoader):
    """YAML's own types, and tags that begin with one exclamation mark."""


TemplateLoader.add_multi_constructor(
    "!", lambda loader, name, node: yaml_tag_constructor(loader, f"!{name}", node)
)


def _load(text: Any, Loader: type) -> Any:
    try:
        template = yaml.load(text, Loader)  # a SafeLoader
    except ConstructorError as error:
        raise AwsError(
            "ValidationError", f"Template format error: YAML not well-formed. {error.problem}"
        ) from error
    resources = template.get("Resources") if isinstance(template, dict) else None
    for name, resource in resources.items() if isinstance(resources, dict) else ():
        if isinstance(resource, dict) and resource.get("Type") == HOSTING:
            raise AwsError(
                "ValidationError",
                f"{name}: the emulator makes no {HOSTING} of a template. Leave it out, and "
                "call create_endpoint with the stack's EndpointConfig.",
            )
    return template


SAFE_YAML = types.SimpleNamespace(
    Loader=TemplateLoader, load=_load, add_multi_constructor=lambda *_: None
)
for _module in (models, responses):
    _module.yaml = SAFE_YAML  # type: ignore[attr-defined]
