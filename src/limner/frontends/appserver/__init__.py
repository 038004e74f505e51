"""A client's messages in; threads, turns and pictures out, as the Codex app-server speaks (v2).

`rpc` knows the shape of a message, `dispatch` who serves it, `connection` one client, `asking` what
the server asks of clients. `stdio` and `websocket` carry the bytes; `serve` puts it together.
"""
