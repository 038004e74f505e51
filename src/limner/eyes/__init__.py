"""The embedded vision model ``limner/eyes``: a picture and a question -> an answer from evidence.

`Eyes` gathers the evidence, `look` answers from it. The way of a question: ``rules`` knows what it
asks for, ``measured`` and ``reading`` answer that from what was measured and read, ``report`` tells
everything where no rule fits. Nothing here guesses: it cannot see objects, and says so.
"""

from limner.eyes.evidence import Evidence
from limner.eyes.look import look
from limner.eyes.seeing import Eyes

__all__ = ["Evidence", "Eyes", "look"]
