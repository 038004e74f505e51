-- Who takes turns in a session: one conversation at a time, of the process that owns the row, for as
-- long as that is alive. `holder` tells the programs within a process apart.
CREATE TABLE session_leases (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    holder TEXT NOT NULL,
    owner_pid INTEGER NOT NULL,
    owner_start TEXT NOT NULL,
    owner_boot TEXT NOT NULL
) STRICT;
