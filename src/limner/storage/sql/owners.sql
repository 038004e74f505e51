-- name: owner_beat
INSERT INTO owners (id, host, boot, namespace, pid, start, beat_ms, beat_up_ms)
VALUES (:id, :host, :boot, :namespace, :pid, :start, clock_ms(), :beat_up_ms)
ON CONFLICT (id) DO UPDATE SET beat_ms = excluded.beat_ms, beat_up_ms = excluded.beat_up_ms;

-- name: owner_beats
-- One row if the owner had a heartbeat in the last milliseconds.
SELECT 1 FROM owners WHERE id = :id AND beat_ms > clock_ms() - :within_ms;

-- name: owner_holds
-- One row if the owner holds a call, a session or a row of a batch.
SELECT 1 FROM ledger WHERE state IN ('reserved', 'sent') AND owner = :id
UNION ALL
SELECT 1 FROM session_leases WHERE holder = :id
UNION ALL
SELECT 1 FROM batch_rows WHERE state = 'running' AND owner = :id
LIMIT 1;

-- name: owners_all
SELECT
    id AS owner, host, boot, namespace, pid, start, beat_ms, beat_up_ms, clock_ms() AS now_ms
FROM owners;

-- name: owner_delete
DELETE FROM owners
WHERE id = :id
    AND NOT EXISTS (SELECT 1 FROM ledger WHERE state IN ('reserved', 'sent') AND owner = :id);
