"""A key and a picture that the tests of several packages share; neither is worth anything."""

from __future__ import annotations

KEY = "sk-test-0123456789abcdef"
# Providers pour whatever comes; whether it is a picture is found out later.
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 1000
