-- name: job_add
INSERT INTO jobs (id, ledger_id, provider, request, created_ms, updated_ms)
VALUES (:id, :ledger_id, :provider, :request, :now_ms, :now_ms);

-- name: job_note
-- Two providers of one service (`replicate`, `replicate-flux`) share its jobs and their URLs.
UPDATE jobs SET remote_id = :remote_id, remote_url = :remote_url, updated_ms = :now_ms
WHERE id = :id AND NOT EXISTS (
    SELECT 1 FROM jobs AS other
    WHERE other.remote_id = :remote_id AND other.id <> :id
        AND (other.provider = jobs.provider OR other.remote_url = :remote_url)
);

-- name: job_deliver
UPDATE jobs
SET delivered_path = :path, delivered_sha256 = :sha256, delivered_bytes = :size_bytes,
    delivered_nano = :cost_nano, delivered_source = :cost_source, updated_ms = :now_ms
WHERE id = :id;

-- name: job_by_id
SELECT
    jobs.id, jobs.ledger_id, ledger.session_id, ledger.tool, jobs.provider, ledger.model,
    jobs.request, jobs.remote_id, jobs.remote_url, jobs.created_ms, ledger.state,
    ledger.quoted_nano, ledger.cost_nano, ledger.cost_source, ledger.error_code, ledger.picture,
    jobs.delivered_path, jobs.delivered_sha256, jobs.delivered_nano, jobs.delivered_source,
    ledger.owner_pid AS pid, ledger.owner_start AS start, ledger.owner_boot AS boot,
    ledger.owner, owners.host, owners.namespace, owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM jobs JOIN ledger ON ledger.id = jobs.ledger_id LEFT JOIN owners ON owners.id = ledger.owner
WHERE jobs.id = :id;

-- name: jobs_unfinished
-- Jobs whose result is unknown, bytes that were paid for but are no picture yet, and pictures that
-- were paid for but have no file.
SELECT
    jobs.id, jobs.ledger_id, ledger.session_id, ledger.tool, jobs.provider, ledger.model,
    jobs.request, jobs.remote_id, jobs.remote_url, jobs.created_ms, ledger.state,
    ledger.quoted_nano, ledger.cost_nano, ledger.cost_source, ledger.error_code, ledger.picture,
    jobs.delivered_path, jobs.delivered_sha256, jobs.delivered_nano, jobs.delivered_source,
    ledger.owner_pid AS pid, ledger.owner_start AS start, ledger.owner_boot AS boot,
    ledger.owner, owners.host, owners.namespace, owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM jobs JOIN ledger ON ledger.id = jobs.ledger_id LEFT JOIN owners ON owners.id = ledger.owner
WHERE ledger.state = 'unknown'
    OR (ledger.state = 'sent' AND jobs.remote_batch IS NULL)
    OR (ledger.state = 'settled' AND ledger.picture IS NOT NULL AND ledger.path IS NULL)
    OR (ledger.state = 'settled' AND ledger.picture IS NULL AND jobs.delivered_path IS NOT NULL)
ORDER BY ledger.id;

-- name: jobs_concluded
-- Which of these jobs have ended, so that their delivered bytes are not the only copy of a picture.
SELECT jobs.id
FROM jobs JOIN ledger ON ledger.id = jobs.ledger_id
WHERE jobs.id IN (SELECT value FROM json_each(:ids))
    AND (ledger.state = 'released' OR (ledger.state = 'settled' AND ledger.picture IS NOT NULL));

-- name: job_forget_delivery
UPDATE jobs
SET delivered_path = NULL, delivered_sha256 = NULL, delivered_bytes = NULL, delivered_nano = NULL,
    delivered_source = NULL, updated_ms = :now_ms
WHERE id = :id;
