-- What became of a picture that was sent to a model in a conversation. `state` only moves forward:
--   suspect     -> accepted      a request with it was answered
--   suspect     -> quarantined   a second request with it was refused
--   quarantined                  requests to this model go out without it
CREATE TABLE picture_verdicts (
    handle TEXT NOT NULL REFERENCES pictures (handle) ON DELETE CASCADE,
    model TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('accepted', 'suspect', 'quarantined')),
    reason TEXT NOT NULL,
    updated_ms INTEGER NOT NULL,
    PRIMARY KEY (handle, model)
) STRICT, WITHOUT ROWID;
