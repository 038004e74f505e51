"""Bytes <-> pixels: verify, convert and draw in isolated worker processes.

``pool.Imaging`` is the door. Modules below it belong to one side of the pipe: the host imports
``pool``, ``process``, ``facts``, ``limits``, ``formats``, ``evidence`` and ``svg``; only ``worker``
and what it imports (``pixels``, ``lockdown``, ``svg.*``, ``evidence.*``) ever touch an image
library, and only ``reader`` the models that read text.
"""
