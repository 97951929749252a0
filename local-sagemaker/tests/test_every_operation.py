"""No operation of SageMaker says that something has run which has not: every one is called."""

from botocore.exceptions import ClientError
from botocore.model import ListShape, MapShape, Shape, StructureShape
from operations_table import EMPTY, KEPT, PAGE, REFUSED, RUN, kinds, operations, page

from local_sagemaker.api import offered


def smallest(shape: Shape):
    """A value that botocore's client takes for a shape, with what it needs and nothing else."""
    least = shape.metadata.get("min", 0)
    if isinstance(shape, StructureShape):
        union = getattr(shape, "is_tagged_union", False)
        names = [*shape.members][:1] if union else shape.required_members
        return {name: smallest(shape.members[name]) for name in names}
    if isinstance(shape, ListShape):
        return [smallest(shape.member)] * least
    if isinstance(shape, MapShape):
        return {smallest(shape.key): smallest(shape.value)} if least else {}
    if shape.type_name == "string":
        return shape.enum[0] if shape.enum else "a" * max(least, 1)
    return {"boolean": True, "timestamp": 1, "blob": b"a"}.get(shape.type_name, max(least, 1))


def outcome(emulator, name: str) -> tuple[int, str, str]:
    """HTTP status, error code and message of a call with the smallest request."""
    model = operations()[name]
    client = emulator.client(model.service_model.service_name)
    try:
        request = smallest(model.input_shape) if model.input_shape else {}
        response = client._make_api_call(name, request)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return status, error.response["Error"]["Code"], error.response["Error"]["Message"]
    lists = [value for value in response.values() if isinstance(value, list)]
    return response["ResponseMetadata"]["HTTPStatusCode"], "", str(lists)


def test_only_what_runs_or_is_kept_is_answered(emulator):
    outcomes = {name: outcome(emulator, name) for name in kinds()}
    by_kind = {
        kind: {name: outcomes[name] for name, its in kinds().items() if its == kind}
        for kind in (RUN, KEPT, EMPTY, REFUSED)
    }
    wrong = {
        name: (status, code, message)
        for name, (status, code, message) in by_kind[REFUSED].items()
        if (status, code, message) != (400, "ValidationException", offered.refusal(name))
    }
    assert not wrong
    assert by_kind[EMPTY] == dict.fromkeys(by_kind[EMPTY], (200, "", "[[]]"))
    # An error of these is about the smallest request, and never the emulator's own fault.
    answered = by_kind[RUN] | by_kind[KEPT]
    assert {name: it for name, it in answered.items() if it[0] >= 500} == {}


def test_the_lists_name_operations_that_exist():
    assert operations().keys() >= offered.KEPT | offered.EMPTY
    assert not offered.KEPT & offered.EMPTY


def test_the_page_is_up_to_date():
    """After a change: python local-sagemaker/tests/operations_table.py"""
    assert PAGE.read_text() == page()
