"""Manifests of tool calls -> rows in the store, each run and paid for once by any process."""
