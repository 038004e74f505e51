-- name: conversation_pictures
-- The pictures of a conversation, what is known of their making, and what a model made of them.
SELECT
    pictures.handle, pictures.mime, pictures.width, pictures.height, pictures.size_bytes,
    pictures.lineage, master.lineage AS parent_lineage, picture_verdicts.state
FROM json_each(:handles) AS wanted
JOIN pictures ON pictures.handle = wanted.value
LEFT JOIN pictures AS master ON master.handle = pictures.parent
LEFT JOIN picture_verdicts
    ON picture_verdicts.handle = pictures.handle AND picture_verdicts.model = :model;

-- name: verdict_accepted
-- A request with the picture was answered; one in quarantine was not in it.
INSERT INTO picture_verdicts (handle, model, state, reason, updated_ms)
SELECT handle, :model, 'accepted', '', :now_ms FROM pictures WHERE handle = :handle
ON CONFLICT (handle, model) DO UPDATE
SET state = 'accepted', reason = '', updated_ms = excluded.updated_ms
WHERE picture_verdicts.state = 'suspect';

-- name: verdict_against
-- A request with the picture was refused; one that was accepted before is not to blame.
INSERT INTO picture_verdicts (handle, model, state, reason, updated_ms)
SELECT handle, :model, :state, :reason, :now_ms FROM pictures WHERE handle = :handle
ON CONFLICT (handle, model) DO UPDATE
SET state = excluded.state, reason = excluded.reason, updated_ms = excluded.updated_ms
WHERE picture_verdicts.state = 'suspect';

-- name: verdicts_of
-- What a model made of these pictures before.
SELECT handle, state FROM picture_verdicts
WHERE model = :model AND handle IN (SELECT value FROM json_each(:handles));
