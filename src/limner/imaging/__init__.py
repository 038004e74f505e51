"""Bytes <-> pixels: verify, convert and draw in isolated worker processes.

Callers use ``pool.Imaging``. Each module belongs to one side of the pipe. The host imports
``pool``, ``process``, ``facts``, ``limits``, ``formats``, ``gif_blocks``, ``png_chunks``,
``provenance``, ``evidence``, ``svg`` and, of ``fit``, ``request`` and ``passthrough``. Only
``worker`` and the modules it imports (``pixels``, ``decode``, ``fit.*``, ``svg.*``,
``evidence.*``) load an image library. Only ``ocr_worker`` loads the OCR models, and only
``c2pa_worker`` loads the C2PA library. ``sandbox`` locks each worker down, with ``landlock`` and
``seccomp``.
"""
