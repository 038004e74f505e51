"""ComfyUI: a request -> a workflow with the request filled in, run on one's own GPU -> a picture.

The workflow is limner's own, which any one checkpoint can draw, or one that somebody exported
from ComfyUI. A job that has an id is never lost, as with the services that are paid.
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

from msgspec.structs import replace

from limner.catalogue.images import image_models
from limner.net.clock import Clock
from limner.net.failures import Vendor
from limner.net.service import Service
from limner.net.sink import Sink
from limner.net.websocket_client import can_listen, listen
from limner.pictures.request import ImageRequest, ProviderCallbacks, Receipt, RemoteJob
from limner.providers.base import Connection, ProviderSpec
from limner.providers.comfyui_api import ComfyApi
from limner.providers.comfyui_progress import ComfyProgress
from limner.providers.comfyui_workflow import Workflow, built_in, own
from limner.providers.jobs import CALL_OFF_S, JobProvider
from limner.providers.local_server import UNKNOWN_FATE

NAME = "comfyui"
BASE_URL = "http://127.0.0.1:8188"
BASE_URL_ENV = "COMFYUI_BASE_URL"
WORKFLOW_ENV = "COMFYUI_WORKFLOW"
EDIT_WORKFLOW_ENV = "COMFYUI_EDIT_WORKFLOW"
MODELS = image_models(NAME)


class ComfyUI:
    """Draws with a ComfyUI.

    Args:
        call_off_s: how long a caller who gives up waits for the job to be taken back.
        listens: whether to open a web socket for progress; without one it is asked for.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        call_off_s: float = CALL_OFF_S,
        listens: bool | None = None,
    ) -> None:
        self._connection = connection
        self._vendor = Vendor(
            provider=NAME,
            title="ComfyUI",
            key_env=None,
            base_url_env=BASE_URL_ENV,
            account_url=connection.base_url,
            unknown_fate=UNKNOWN_FATE,
        )
        self._call_off_s = call_off_s
        self._listens = can_listen() if listens is None else listens

    async def generate(self, request: ImageRequest, sink: Sink, desk: ProviderCallbacks) -> Receipt:
        """Draw, pouring the bytes into the sink; raises as `Provider.generate`."""
        client_id = uuid4().hex
        news = ComfyProgress(desk, self._connection.clock, pictures=request.partial_pictures)
        api = self._api(news.clock, self._workflow(request), client_id=client_id)
        listening = asyncio.ensure_future(self._listen(client_id, news))
        try:
            jobs = JobProvider(api, call_off_s=self._call_off_s)
            return _free(await jobs.generate(request, sink, news.desk), api)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def find(self, request: ImageRequest, *, since_ms: int) -> RemoteJob | None:
        """The job of a request that was sent but whose id never arrived, or None."""
        return await self._api(self._connection.clock).find(request, since_ms=since_ms)

    async def resume(
        self, job: RemoteJob, request: ImageRequest, sink: Sink, desk: ProviderCallbacks
    ) -> Receipt:
        """Wait for a job that was started earlier; giving up leaves it as it is."""
        api = self._api(self._connection.clock)
        return _free(await JobProvider(api).resume(job, request, sink, desk), api)

    def _api(
        self, clock: Clock, workflow: Workflow | None = None, *, client_id: str = ""
    ) -> ComfyApi:
        connection = replace(self._connection, clock=clock)
        # What is only looked at needs no workflow of its own.
        graph = workflow or built_in(edits=False, masked=False)
        service = Service(connection, self._vendor, headers={})
        return ComfyApi(service, graph, MODELS[0], client_id=client_id)

    def _workflow(self, request: ImageRequest) -> Workflow:
        variable = EDIT_WORKFLOW_ENV if request.sources else WORKFLOW_ENV
        path = self._connection.variables.get(variable, "").strip()
        if path:
            return own(path, variable=variable)
        return built_in(edits=bool(request.sources), masked=request.mask is not None)

    async def _listen(self, client_id: str, news: ComfyProgress) -> None:
        if self._listens:
            address = f"ws{self._connection.base_url.removeprefix('http')}/ws?clientId={client_id}"
            await listen(address, news.hear, {})


def _free(receipt: Receipt, api: ComfyApi) -> Receipt:
    return replace(receipt, cost_nano=0, extras={**receipt.extras, **api.facts})


SPEC = ProviderSpec(
    name=NAME,
    key_env=None,
    base_url_env=BASE_URL_ENV,
    base_url=BASE_URL,
    models=MODELS,
    build=ComfyUI,
    other_model=MODELS[0],
    named_only=True,
    variables=(WORKFLOW_ENV, EDIT_WORKFLOW_ENV),
)
