"""limner's tools for any MCP client, over standard streams or HTTP."""
