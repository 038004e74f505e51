"""Image models as dated data: sizes, qualities, prices, lifecycles, each row with its source.

The rows live in ``images.toml``. What a model may be asked for and what it will cost is decided
here, from data alone, before anything is sent.
"""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Literal

import msgspec

from limner.errors import CostSource

