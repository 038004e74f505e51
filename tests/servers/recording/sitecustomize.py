"""A Python program with this folder in PYTHONPATH records its messages in the folder MESSAGES.

Python imports a module of this name before anything else, so programs that start an app-server by
themselves record what it sends and receives.
"""

import os
import runpy
from pathlib import Path

if "MESSAGES" in os.environ:
    program = runpy.run_path(str(Path(__file__).parents[1] / "message_record.py"))
    program["record_messages"](Path(os.environ["MESSAGES"]))
