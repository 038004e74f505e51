"""Files, environment and flags -> one `Settings` value, read once at the start.

``values`` declares the settings, ``fields`` checks a raw value of one setting, ``documents`` parses
files, ``layers`` merges files, variables and flags, and ``project_file`` limits what a file in the
working folder can change. ``config_syntax`` and ``config_toml`` edit the text of a file.
"""

from __future__ import annotations

from limner.settings.custom_models import CustomModel
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
    ServiceSettings,
    Settings,
    ToolSettings,
    all_settings,
    value_of,
)

__all__ = [
    "MAX_USD",
    "AgentSettings",
    "AppServerSettings",
    "ApprovalSettings",
    "BudgetSettings",
    "CustomModel",
    "Format",
    "ImageSettings",
    "Loaded",
    "McpSettings",
    "ModelRoleSettings",
    "Policy",
    "Sandbox",
    "ServiceSettings",
    "Settings",
    "ToolSettings",
    "all_settings",
    "load",
    "load_with_sources",
    "value_of",
]
