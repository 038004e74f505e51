"""The types and the method of the handshake, which a client waits for: it needs no other types."""

from collections.abc import Mapping

from limner.frontends.appserver.protocol.base import Method, Shape


class ClientInfo(Shape):
    name: str
    version: str
    title: str | None = None


class InitializeCapabilities(Shape):
    """Both lists have exact method names.

    ``opt_in_notification_methods`` is limner's own: it names those of limner's own notifications
    that the client wants.
    """

    experimental_api: bool = False
    opt_out_notification_methods: list[str] | None = None
    opt_in_notification_methods: list[str] | None = None


class InitializeParams(Shape):
    """The first request of every connection."""

    client_info: ClientInfo
    capabilities: InitializeCapabilities | None = None


class InitializeResponse(Shape):
    user_agent: str
    codex_home: str
    platform_family: str
    platform_os: str


METHODS: Mapping[str, Method] = {
    "initialize": Method(
        params=InitializeParams,
        result=InitializeResponse,
        handler="handshake:initialize",
        needs_initialize=False,
    ),
}
