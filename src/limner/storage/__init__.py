"""Everything on disk: what may be reached, files, blobs, the database and the keys."""
