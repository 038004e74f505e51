-- Which rows of the ledger a call from elsewhere is answerable for, so that its answer is found
-- again when the process that began it is gone. A call that was promised an answer before anything
-- was reserved has one row without `ledger_id`. `delivered_ms` is when somebody got the answer.
CREATE TABLE calls (
    call_id TEXT NOT NULL,
    ledger_id INTEGER REFERENCES ledger (id),
    tool TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    delivered_ms INTEGER
) STRICT;

CREATE INDEX calls_by_id ON calls (call_id);
CREATE INDEX calls_by_digest ON calls (digest, created_ms) WHERE delivered_ms IS NULL;
