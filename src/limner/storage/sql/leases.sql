-- name: lease_of
-- The holder of a session, which may have ended. `owner` is NULL if the holder is no owner: then an
-- older version of limner took the lease.
SELECT
    session_leases.session_id, session_leases.holder, session_leases.owner_pid AS pid,
    session_leases.owner_start AS start, session_leases.owner_boot AS boot, owners.id AS owner,
    owners.host, owners.namespace, owners.beat_ms, owners.beat_up_ms,
    clock_ms() AS now_ms
FROM session_leases LEFT JOIN owners ON owners.id = session_leases.holder
WHERE session_leases.session_id = :session_id;

-- name: lease_take
-- Have a session, if there is one; nobody asks here who had it before.
INSERT INTO session_leases (session_id, holder, owner_pid, owner_start, owner_boot)
SELECT id, :holder, :pid, :start, :boot FROM sessions WHERE id = :session_id
ON CONFLICT (session_id) DO UPDATE SET
    holder = excluded.holder,
    owner_pid = excluded.owner_pid,
    owner_start = excluded.owner_start,
    owner_boot = excluded.owner_boot;

-- name: lease_end
DELETE FROM session_leases WHERE session_id = :session_id AND holder = :holder;

-- name: leases_end
-- Let go of every session at once.
DELETE FROM session_leases WHERE holder = :holder;
