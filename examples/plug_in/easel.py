"""A provider for limner: the Easel service, which draws in jobs."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from urllib.parse import quote

from limner import plugins


@dataclass
class Job:
    id: str
    state: str
    picture_url: str | None = None
    cost_usd: float | None = None
    error: str | None = None


class Easel(plugins.JobProvider):
    def __init__(self, connection: plugins.Connection) -> None:
        self.api = plugins.HttpService(connection, SPEC)
        super().__init__(self.api, artist="Easel")

    async def create(self, request: plugins.ImageRequest, sink: plugins.Sink) -> plugins.JobStatus:
        body = {"prompt": request.prompt, "size": [request.width, request.height]}
        return self._status(await self.api.ask("POST", "/jobs", Job, body=body, paid=True))

    async def poll(
        self, job: plugins.RemoteJob, sink: plugins.Sink, *, timeout_s: float
    ) -> plugins.JobStatus:
        return self._status(await self.api.ask("GET", job.url, Job, timeout_s=timeout_s))

    async def cancel(self, job: plugins.RemoteJob) -> bool:
        return (await self.api.ask("DELETE", job.url, Job)).state == "cancelled"

    def _status(self, job: Job) -> plugins.JobStatus:
        url = f"{self.api.base_url}/jobs/{quote(job.id, safe='')}"
        failed = job.state == "failed"
        return plugins.JobStatus(
            job=plugins.RemoteJob(remote_id=job.id, url=url),
            ended=failed or job.state == "done",
            failure=self.api.reported_error(job.error, None, paid=False) if failed else None,
            picture=job.picture_url,
            cost_nano=plugins.cost_of_dollars(job.cost_usd),
        )


SPEC = plugins.ProviderSpec(
    name="easel",
    title="Easel",
    key_env="EASEL_API_KEY",
    base_url_env="EASEL_BASE_URL",
    base_url="https://api.easel.example/v1",
    models=(
        plugins.ImageModel(
            provider="easel",
            id="easel-1",
            title="Easel 1",
            sizes=plugins.ListedSizes(sizes=(plugins.Size(1024, 1024), plugins.Size(1536, 1024))),
            price=plugins.ReportedPrice(at_most_usd=Decimal("0.10")),
            max_prompt_chars=4_000,
            source="https://easel.example/pricing",
            read=date(2026, 11, 16),
        ),
    ),
    build=Easel,
)
