"""The endpoints of the studio, one module for each topic."""

from __future__ import annotations

from limner.frontends.studio.api import (
    conversations,
    drawings,
    inspections,
    live,
    money,
    pictures,
    selections,
)

ENDPOINTS = (
    *pictures.ENDPOINTS,
    *selections.ENDPOINTS,
    *drawings.ENDPOINTS,
    *inspections.ENDPOINTS,
    *money.ENDPOINTS,
    *conversations.ENDPOINTS,
    *live.ENDPOINTS,
)
