"""Boxes, edges and groups -> a layered layout of them."""
