-- name: answer_add
-- Remember an answer; a newer one takes its place.
INSERT INTO answers (key, text, created_ms)
VALUES (:key, :text, :created_ms)
ON CONFLICT (key) DO UPDATE SET text = excluded.text, created_ms = excluded.created_ms;

-- name: answer_get
-- What was answered before.
SELECT text FROM answers WHERE key = :key;
