"""Bytes <-> pixels: verify, convert and draw in isolated worker processes.

``pool.Imaging`` is the door. Modules below it belong to one side of the pipe: the host imports
``pool``, ``process``, ``facts``, ``limits``, ``formats``, ``gif_blocks``, ``evidence``, ``svg``,
``provenance`` and, of ``fit``, ``request`` and ``plain``; only ``worker`` and what it imports
(``pixels``, ``lockdown``, ``fit.*``, ``svg.*``, ``evidence.*``) ever touch an image library, only
``reader`` the models that read text, and only ``notary`` what reads C2PA.
"""
