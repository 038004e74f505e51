-- Times are unix milliseconds, days are UTC (YYYY-MM-DD), money is integer nano-dollars.

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    cwd TEXT NOT NULL
) STRICT;

-- One row for each paid-for (or free) call. `state` only moves forward:
--   reserved -> released            nothing was sent, or the service said it will not charge
--   reserved -> sent -> settled     the price is known
--   reserved -> sent -> unknown     it may have been charged; the quote stays counted
--   unknown  -> settled | released  `limner jobs recover` found out
CREATE TABLE ledger (
    id INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('reserved', 'sent', 'settled', 'unknown', 'released')),
    quoted_nano INTEGER NOT NULL CHECK (quoted_nano >= 0),
    cost_nano INTEGER NOT NULL CHECK (cost_nano >= 0),
    cost_source TEXT NOT NULL,
    day TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    owner_pid INTEGER NOT NULL,
    owner_start TEXT NOT NULL,
    owner_boot TEXT NOT NULL,
    error_code TEXT,
    picture TEXT,
    path TEXT
) STRICT;
-- `cost_nano` is what counts against every cap at this moment: the quote while reserved, sent or
-- unknown, the price once settled, nothing once released.
CREATE INDEX ledger_by_session ON ledger (session_id);
CREATE INDEX ledger_by_day ON ledger (day);
CREATE INDEX ledger_unfinished ON ledger (state) WHERE state IN ('reserved', 'sent');

-- One row for each request that was sent: what was asked, and how to find it again.
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    ledger_id INTEGER NOT NULL UNIQUE REFERENCES ledger (id),
    provider TEXT NOT NULL,
    request TEXT NOT NULL,
    remote_id TEXT,
    remote_url TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL
) STRICT;

-- One row for each content. A derivative (a PNG made of a WebP, a crop) names its parent.
CREATE TABLE pictures (
    handle TEXT PRIMARY KEY,
    mime TEXT NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    parent TEXT REFERENCES pictures (handle),
    lineage TEXT NOT NULL,
    created_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX pictures_by_parent ON pictures (parent);
