-- Who spends besides the session: the program (one `Limner` object), and a part of it by name.
ALTER TABLE ledger ADD COLUMN program TEXT;
ALTER TABLE ledger ADD COLUMN scope TEXT;

-- Sums over the ledger, so that no reader has to add up its rows. Triggers keep them in the
-- transaction that changes a row, whichever version of limner changes it. `kind` is all, day,
-- session, program, scope or model; `calls` counts settled and unknown rows; `last_id` is the
-- newest row.
CREATE TABLE spending (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    settled_nano INTEGER NOT NULL,
    unknown_nano INTEGER NOT NULL,
    in_flight_nano INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    last_id INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_by_use ON spending (last_id) WHERE kind = 'session' AND calls > 0;

-- One row of the ledger as it counts, for each sum that it belongs to.
CREATE VIEW ledger_counts AS
SELECT
    ledger.id, kinds.kind,
    CASE kinds.kind
        WHEN 'all' THEN ''
        WHEN 'day' THEN day
        WHEN 'session' THEN session_id
        WHEN 'program' THEN program
        WHEN 'scope' THEN scope
        WHEN 'model' THEN provider || '/' || model
    END AS name,
    iif(state = 'settled', cost_nano, 0) AS settled_nano,
    iif(state = 'unknown', cost_nano, 0) AS unknown_nano,
    iif(state IN ('reserved', 'sent'), cost_nano, 0) AS in_flight_nano,
    iif(state IN ('settled', 'unknown'), 1, 0) AS calls
FROM ledger
JOIN (
    SELECT 'all' AS kind UNION ALL SELECT 'day' UNION ALL SELECT 'session'
    UNION ALL SELECT 'program' UNION ALL SELECT 'scope' UNION ALL SELECT 'model'
) AS kinds
WHERE name IS NOT NULL;

-- Grouped once and then added up, which takes a third of the time: others wait meanwhile.
INSERT INTO spending
WITH parts AS MATERIALIZED (
    SELECT
        session_id, day, provider || '/' || model AS model,
        sum(iif(state = 'settled', cost_nano, 0)) AS settled_nano,
        sum(iif(state = 'unknown', cost_nano, 0)) AS unknown_nano,
        sum(iif(state IN ('reserved', 'sent'), cost_nano, 0)) AS in_flight_nano,
        sum(iif(state IN ('settled', 'unknown'), 1, 0)) AS calls,
        max(id) AS last_id
    FROM ledger
    GROUP BY session_id, day, provider, model
)
SELECT
    kind,
    CASE kind
        WHEN 'all' THEN '' WHEN 'day' THEN day WHEN 'session' THEN session_id ELSE model
    END AS name,
    sum(settled_nano), sum(unknown_nano), sum(in_flight_nano), sum(calls), max(last_id)
FROM parts
JOIN (
    SELECT 'all' AS kind UNION ALL SELECT 'day' UNION ALL SELECT 'session' UNION ALL SELECT 'model'
)
GROUP BY 1, 2;

CREATE TRIGGER ledger_added AFTER INSERT ON ledger BEGIN
    INSERT INTO spending
    SELECT kind, name, settled_nano, unknown_nano, in_flight_nano, calls, id
    FROM ledger_counts WHERE id = NEW.id
    ON CONFLICT (kind, name) DO UPDATE SET
        settled_nano = settled_nano + excluded.settled_nano,
        unknown_nano = unknown_nano + excluded.unknown_nano,
        in_flight_nano = in_flight_nano + excluded.in_flight_nano,
        calls = calls + excluded.calls,
        last_id = max(last_id, excluded.last_id);
END;

-- A row keeps its day, session, program, scope and model, so that only the sums change.
CREATE TRIGGER ledger_moved AFTER UPDATE OF state, cost_nano ON ledger BEGIN
    UPDATE spending SET
        settled_nano = settled_nano
            + iif(NEW.state = 'settled', NEW.cost_nano, 0)
            - iif(OLD.state = 'settled', OLD.cost_nano, 0),
        unknown_nano = unknown_nano
            + iif(NEW.state = 'unknown', NEW.cost_nano, 0)
            - iif(OLD.state = 'unknown', OLD.cost_nano, 0),
        in_flight_nano = in_flight_nano
            + iif(NEW.state IN ('reserved', 'sent'), NEW.cost_nano, 0)
            - iif(OLD.state IN ('reserved', 'sent'), OLD.cost_nano, 0),
        calls = calls
            + iif(NEW.state IN ('settled', 'unknown'), 1, 0)
            - iif(OLD.state IN ('settled', 'unknown'), 1, 0)
    WHERE (kind, name) IN (SELECT kind, name FROM ledger_counts WHERE id = NEW.id);
END;

-- `limner show` asks which calls bought a picture, and what was drawn from it.
CREATE INDEX ledger_by_picture ON ledger (picture) WHERE picture IS NOT NULL;

CREATE TABLE drawn_from (
    parent TEXT NOT NULL,
    picture TEXT NOT NULL REFERENCES pictures (handle) ON DELETE CASCADE,
    PRIMARY KEY (parent, picture)
) STRICT, WITHOUT ROWID;
CREATE INDEX drawn_from_by_picture ON drawn_from (picture);

INSERT OR IGNORE INTO drawn_from
SELECT value, handle FROM pictures, json_each(iif(json_valid(lineage), lineage, '{}'), '$.parents');

CREATE TRIGGER picture_added AFTER INSERT ON pictures BEGIN
    INSERT OR IGNORE INTO drawn_from
    SELECT value, NEW.handle FROM json_each(NEW.lineage, '$.parents');
END;
