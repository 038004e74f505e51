"""Everything that crosses the network: clients, safe downloads, streamed JSON, redaction."""
