-- As migration 22 of SQLite, in parts, so that writers seldom wait for each other.
CREATE TABLE batch_count_parts (
    batch_id text COLLATE "C" NOT NULL,
    part integer NOT NULL,
    waiting bigint NOT NULL,
    running bigint NOT NULL,
    done bigint NOT NULL,
    failed bigint NOT NULL,
    PRIMARY KEY (batch_id, part)
) WITH (fillfactor = 50);

CREATE VIEW batch_counts AS
SELECT
    batch_id, sum(waiting)::bigint AS waiting, sum(running)::bigint AS running,
    sum(done)::bigint AS done, sum(failed)::bigint AS failed
FROM batch_count_parts
GROUP BY batch_id;

CREATE FUNCTION count_batch_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    entered text := CASE WHEN TG_OP = 'DELETE' THEN '' ELSE NEW.state END;
    left_behind text := CASE WHEN TG_OP = 'INSERT' THEN '' ELSE OLD.state END;
BEGIN
    IF entered = left_behind THEN
        RETURN NULL;
    END IF;
    INSERT INTO batch_count_parts AS parts VALUES (
        CASE WHEN TG_OP = 'DELETE' THEN OLD.batch_id ELSE NEW.batch_id END,
        pg_backend_pid() % 32,
        (entered = 'waiting')::integer - (left_behind = 'waiting')::integer,
        (entered = 'running')::integer - (left_behind = 'running')::integer,
        (entered = 'done')::integer - (left_behind = 'done')::integer,
        (entered = 'failed')::integer - (left_behind = 'failed')::integer
    )
    ON CONFLICT (batch_id, part) DO UPDATE SET
        waiting = parts.waiting + excluded.waiting,
        running = parts.running + excluded.running,
        done = parts.done + excluded.done,
        failed = parts.failed + excluded.failed;
    RETURN NULL;
END $$;
-- Before the rows are counted: it waits for other writers, and they wait for this migration.
CREATE TRIGGER batch_row_counted AFTER INSERT OR DELETE OR UPDATE OF state ON batch_rows
FOR EACH ROW EXECUTE FUNCTION count_batch_row();

INSERT INTO batch_count_parts
SELECT
    batch_id, 0, count(*) FILTER (WHERE state = 'waiting'), count(*) FILTER (WHERE state = 'running'),
    count(*) FILTER (WHERE state = 'done'), count(*) FILTER (WHERE state = 'failed')
FROM batch_rows
GROUP BY batch_id;
