-- How many rows of each batch are in which state, so that no reader counts rows. Triggers keep them
-- in the transaction that changes a row, whichever version of limner changes it.
CREATE TABLE batch_counts (
    batch_id TEXT PRIMARY KEY,
    waiting INTEGER NOT NULL,
    running INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO batch_counts
SELECT
    batch_id, sum(state = 'waiting'), sum(state = 'running'), sum(state = 'done'),
    sum(state = 'failed')
FROM batch_rows
GROUP BY batch_id;

CREATE TRIGGER batch_row_added AFTER INSERT ON batch_rows BEGIN
    INSERT INTO batch_counts VALUES (
        NEW.batch_id, NEW.state = 'waiting', NEW.state = 'running', NEW.state = 'done',
        NEW.state = 'failed'
    )
    ON CONFLICT (batch_id) DO UPDATE SET
        waiting = waiting + excluded.waiting,
        running = running + excluded.running,
        done = done + excluded.done,
        failed = failed + excluded.failed;
END;

CREATE TRIGGER batch_row_moved AFTER UPDATE OF state ON batch_rows WHEN NEW.state <> OLD.state BEGIN
    UPDATE batch_counts SET
        waiting = waiting + (NEW.state = 'waiting') - (OLD.state = 'waiting'),
        running = running + (NEW.state = 'running') - (OLD.state = 'running'),
        done = done + (NEW.state = 'done') - (OLD.state = 'done'),
        failed = failed + (NEW.state = 'failed') - (OLD.state = 'failed')
    WHERE batch_id = NEW.batch_id;
END;

CREATE TRIGGER batch_row_removed AFTER DELETE ON batch_rows BEGIN
    UPDATE batch_counts SET
        waiting = waiting - (OLD.state = 'waiting'),
        running = running - (OLD.state = 'running'),
        done = done - (OLD.state = 'done'),
        failed = failed - (OLD.state = 'failed')
    WHERE batch_id = OLD.batch_id;
END;
