"""Local servers over real sockets that speak the vendors' wires; also runnable as processes."""
