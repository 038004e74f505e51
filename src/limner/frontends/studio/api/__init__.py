"""The endpoints of the studio, one module for each topic."""

from __future__ import annotations

from limner.frontends.studio.api import drawing, live, pictures

ENDPOINTS = (*pictures.ENDPOINTS, *drawing.ENDPOINTS, *live.ENDPOINTS)
