"""A client's requests -> threads, turns and pictures, as the Codex app-server serves them (v2).

`protocol` has the types and the rows of the method table, and `methods` the table.
`net.jsonrpc_peer` handles messages, `dispatch` finds the handler of a request, `connection` is one
client, `websocket` listens for many, and `server` puts it together.
"""
