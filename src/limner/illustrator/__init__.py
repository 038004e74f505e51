"""The embedded provider: a prompt or an SVG document -> vector art from ready-made pictures.

``draw.draw`` is the door, ``assets`` the picture pack. The way of a prompt: ``words`` splits it,
``reading`` understands it with the tables of ``grammar``, ``vocabulary`` and ``scenes``,
``backdrop`` draws the scene, ``grouping`` and ``placing`` arrange the things by ``figures``, and
``compose`` puts it together. Nothing here parses XML or touches pixels.
"""
