"""Pictures for AI agents: make them, look at them, carry them through every protocol."""

__version__ = "0.1.0"
