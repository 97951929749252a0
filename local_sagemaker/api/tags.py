"""AddTags, ListTags and DeleteTags of what this package keeps; moto has the rest."""

from __future__ import annotations

from collections.abc import Callable

from local_sagemaker.protocol.errors import NOT_FOUND, validation

# A thing of these kinds that nobody here knows was deleted: moto never knew it.
OURS = (":training-job/", ":transform-job/", ":endpoint/")


class TagsApi:
    """The calls about tags. finders: ARN -> a record with `data["tags"]` and `save`, or None."""

    def __init__(self, *finders: Callable[[str], object | None]) -> None:
        self.finders = finders

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        return {"AddTags": self.add, "ListTags": self.list, "DeleteTags": self.delete}

    def add(self, request: dict, region: str) -> dict | None:
        record = self._tagged(request)
        if record is None:
            return None
        new = {tag["Key"]: tag for tag in [*record.data["tags"], *request["Tags"]]}
        record.data["tags"] = list(new.values())
        record.save()
        return {"Tags": record.data["tags"]}

    def list(self, request: dict, region: str) -> dict | None:
        record = self._tagged(request)
        return None if record is None else {"Tags": record.data["tags"]}

    def delete(self, request: dict, region: str) -> dict | None:
        record = self._tagged(request)
        if record is None:
            return None
        gone = set(request["TagKeys"])
        record.data["tags"] = [tag for tag in record.data["tags"] if tag["Key"] not in gone]
        record.save()
        return {}

    def _tagged(self, request: dict) -> object | None:
        """What a request about tags means; None if it means something of moto's."""
        arn = request["ResourceArn"]
        record = next((found for find in self.finders if (found := find(arn))), None)
        if record is None and any(kind in arn for kind in OURS):
            raise validation(NOT_FOUND)
        return record
