"""Sources (limner's JSON, diagrams, documents) -> SVG, with text and numbers exactly as written.

``document`` parses and draws limner's own JSON, whose elements are declared in ``elements``.
``layout`` shares the room between them, ``charts``, ``tables`` and ``widgets`` draw them with a
``brush``, and ``text`` measures words in the bundled fonts. A worker makes pixels of the SVG.
"""
