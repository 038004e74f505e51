-- When something that others wrote first came into a session; NULL where nothing did. What older
-- sessions have read was not noted, so that it may have been anything.
ALTER TABLE sessions ADD COLUMN read_untrusted_ms INTEGER;
UPDATE sessions SET read_untrusted_ms = updated_ms WHERE items > 0;
