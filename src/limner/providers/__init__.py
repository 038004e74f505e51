"""A request -> untrusted bytes in a sink, and a receipt. One file for each service."""
