"""A conversation's items <-> one API's JSON: pure functions over loaded bytes, no I/O."""
