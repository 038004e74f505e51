"""A client's messages in; threads, turns and pictures out, as the Codex app-server speaks (v2).

`net.jsonrpc_peer` handles messages, `dispatch` finds the method that serves a request, `connection`
is one client, `websocket` listens for many, and `server` puts it together.
"""
