"""A picture's bytes -> who says they made it: whether a C2PA manifest is there, and what it claims.

The host imports the values of ``record``, and ``embedded``, which only looks; what a manifest says
is read by ``claims``, with native code, inside the process `notary` and nowhere else.
"""

from limner.imaging.provenance.record import INSTALL, Ingredient, Manifest, State, can_read

__all__ = ["INSTALL", "Ingredient", "Manifest", "State", "can_read"]
