"""Services on this machine, as their vendors' clients know them: HTTP servers that tests script."""
