"""limner's tools as native tools of other agent frameworks, one module for each framework."""
