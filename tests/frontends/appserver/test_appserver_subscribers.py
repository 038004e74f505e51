"""Two clients of one server: what each of them hears of the other's threads."""

from __future__ import annotations

from tests.servers.appserver_process import Client, Stage


async def heard_by(client: Client) -> list[str]:
    """What a client has heard until now: a request comes back after everything before it."""
    await client.request("thread/loaded/list")
    heard, client.heard[:] = client.methods, []
    return heard


async def test_every_client_hears_of_the_threads_of_every_other(stage: Stage) -> None:
    async with stage.listening() as come, come() as one, come() as two:
        thread = await one.start()
        started = await heard_by(two)
        await one.turn(thread, "hi")
        ran = await heard_by(two)
        about = {"threadId": thread}
        await one.request("thread/name/set", **about, name="n")
        renamed = await heard_by(two)
        fork = (await one.request("thread/fork", **about))["thread"]["id"]
        forked = await heard_by(two)
        await one.request("thread/archive", **about)
        await one.request("thread/unarchive", **about)
        archived = await heard_by(two)
        await one.request("thread/delete", threadId=fork)
        deleted = await heard_by(two)
    assert started == ["thread/started"]
    assert ran == ["thread/status/changed", "thread/status/changed"]
    assert renamed == ["thread/name/updated"]
    assert forked == ["thread/started"]
    assert archived == ["thread/status/changed", "thread/archived", "thread/unarchived"]
    assert deleted == ["thread/status/changed", "thread/deleted"]


async def test_a_login_is_an_account_that_every_client_hears_of(stage: Stage) -> None:
    async with stage.listening() as come, come() as one, come() as two:
        before = await one.request("account/read")
        await one.request("account/login/start", type="apiKey", apiKey="sk-test-0123456789")
        after = await two.request("account/read")
        heard = await heard_by(two)
        await two.request("account/logout")
        out = await one.request("account/read")
    assert before["account"] is None
    assert after["account"] == {"type": "apiKey"}
    assert heard == ["account/login/completed", "account/updated"]
    assert out["account"] is None
