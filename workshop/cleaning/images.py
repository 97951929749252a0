"""Private registries of images: what containers/horovod/build_and_push.sh makes."""

from __future__ import annotations

from workshop.account.prices import usd_per_month as month
from workshop.cleaning.things import Finding, Thing, as_dict


class ImageRepositories:
    """A repository with all its images. Their layers are billed by size and month."""

    kind = "image repositories"

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("ecr")

    def find(self) -> Finding:
        found = Finding()
        for page in self.client.get_paginator("describe_repositories").paginate():
            for one in page["repositories"]:
                name = one["repositoryName"]
                if name.startswith(self.session.job_prefix):
                    listed = self.client.list_tags_for_resource(resourceArn=one["repositoryArn"])
                    found.sort(self.session.seat, self._sized(name), as_dict(listed["tags"]))
        return found

    def delete(self, thing: Thing) -> None:
        try:
            self.client.delete_repository(repositoryName=thing.name, force=True)
        except self.client.exceptions.RepositoryNotFoundException:
            return

    def _sized(self, name: str) -> Thing:
        pages = self.client.get_paginator("describe_images").paginate(repositoryName=name)
        sizes = [one.get("imageSizeInBytes", 0) for page in pages for one in page["imageDetails"]]
        # Layers that images share are billed once: this is the most that it can be.
        note = f"{len(sizes)} image{'s' * (len(sizes) != 1)}"
        return Thing(
            self.kind, name, size=sum(sizes), usd_per_month=month("ecr", sum(sizes)), note=note
        )
