"""Files, environment and flags -> one `Settings` value, read once at the edge.

``values`` says what can be set, ``keys`` checks one raw value against its key, ``documents``
parses files, ``layers`` puts files, variables and flags on top of each other, and ``strangers``
holds a file in the working folder to what it may decide.
"""

from __future__ import annotations

from limner.settings.layers import Loaded, load, load_with_sources
from limner.settings.values import (
    MAX_USD,
    AgentSettings,
    ApprovalSettings,
    AppServerSettings,
    BudgetSettings,
    Format,
    ImageSettings,
    McpSettings,
    ModelRoleSettings,
    Policy,
    Sandbox,
    Settings,
    ToolSettings,
    all_settings,
)

__all__ = [
    "MAX_USD",
    "AgentSettings",
    "AppServerSettings",
    "ApprovalSettings",
    "BudgetSettings",
    "Format",
    "ImageSettings",
    "Loaded",
    "McpSettings",
    "ModelRoleSettings",
    "Policy",
    "Sandbox",
    "Settings",
    "ToolSettings",
    "all_settings",
    "load",
    "load_with_sources",
]
