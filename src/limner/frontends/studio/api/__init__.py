"""The endpoints of the studio, one module for each topic."""

from __future__ import annotations

from limner.frontends.studio.api import (
    batches,
    checks,
    conversations,
    drawings,
    inspections,
    live,
    money,
    pictures,
    preferences,
    selections,
)

ENDPOINTS = (
    *pictures.ENDPOINTS,
    *selections.ENDPOINTS,
    *drawings.ENDPOINTS,
    *inspections.ENDPOINTS,
    *checks.ENDPOINTS,
    *money.ENDPOINTS,
    *batches.ENDPOINTS,
    *preferences.ENDPOINTS,
    *conversations.ENDPOINTS,
    *live.ENDPOINTS,
)
