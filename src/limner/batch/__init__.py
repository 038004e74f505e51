"""Manifests of tool calls -> rows in the store, each run and paid once, by any process."""
