-- The processes that hold calls or sessions, each with the heartbeat of its lease. One row for each
-- open database of a process. The process table of one boot and one PID namespace decides at once
-- whether an owner lives; everywhere else its last heartbeat decides. `beat_up_ms` is the time
-- since the boot: it does not jump if the wall clock is set, and stands still while a machine sleeps.
CREATE TABLE owners (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    namespace TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start TEXT NOT NULL,
    beat_ms INTEGER NOT NULL,
    beat_up_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The owner of a row; NULL if an older version of limner wrote the row. The older columns
-- (owner_pid, owner_start, owner_boot) stay filled for older processes. `holder` of a session's
-- lease is the id of an owner, if a version with owners took the lease.
ALTER TABLE ledger ADD COLUMN owner TEXT;
