-- name: session_touch
-- Begin a session, or note that it was used just now and from where.
INSERT INTO sessions (id, created_ms, updated_ms, cwd)
VALUES (:id, :now_ms, :now_ms, :cwd)
ON CONFLICT (id) DO UPDATE SET
    updated_ms = max(updated_ms, excluded.updated_ms),
    cwd = excluded.cwd;

-- name: session_get
-- One session by its id.
SELECT id, created_ms, updated_ms, cwd FROM sessions WHERE id = :id;

-- name: session_recent
-- The sessions used last first.
SELECT id, created_ms, updated_ms, cwd
FROM sessions
ORDER BY updated_ms DESC, rowid DESC
LIMIT :limit;
