-- +goose Up

-- The log of Agentbox. Everything lies in the schema agentbox, so that a database may be shared with other programs. Texts that order
-- anything are compared byte by byte. What stands here and is not commented is as in the tables of SQLite.

-- One row: what the documents were folded by, and by which keys the log is sealed.
CREATE TABLE log (
  one        boolean PRIMARY KEY DEFAULT true CHECK (one),
  folds      bigint NOT NULL DEFAULT 1, -- rises with each change of projections; see advance
  reign      bigint NOT NULL DEFAULT 0, -- rises with each daemon that takes the database for itself
  generation bigint,                    -- of the tree of keys by which the keyring is known; NULL for a log that is not sealed
  proof      bytea,                     -- hash of the key of that tree's leaf 1
  sealed     boolean                    -- NULL until the log is opened for the first time
);
INSERT INTO log DEFAULT VALUES;

CREATE TABLE workspaces (
  no    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name  text COLLATE "C" NOT NULL UNIQUE,
  head  bigint NOT NULL DEFAULT 0,  -- seq of its last event; who appends holds this row
  last  bytea NOT NULL DEFAULT '',  -- event_hash of its last event
  epoch bigint NOT NULL DEFAULT 0   -- rises when documents change without an event: by a redaction
) WITH (fillfactor = 50);

CREATE SEQUENCE numbers INCREMENT 256; -- of streams and documents; each value stands for 256 of them, and none is given twice

CREATE TABLE streams (
  no        bigint PRIMARY KEY,
  workspace bigint NOT NULL,
  type      text COLLATE "C" NOT NULL,
  id        text COLLATE "C" NOT NULL,
  head      bigint NOT NULL,
  hash      bytea NOT NULL,
  UNIQUE (workspace, type, id)
) WITH (fillfactor = 50);

CREATE TABLE events (
  workspace   bigint NOT NULL,
  seq         bigint NOT NULL,
  stream      bigint NOT NULL,
  stream_seq  bigint NOT NULL,
  type        text COLLATE "C" NOT NULL,
  id          uuid NOT NULL,
  recorded_at bigint NOT NULL, -- microseconds since 1970
  correlation text COLLATE "C" NOT NULL,
  run         text COLLATE "C",
  step        text COLLATE "C",
  thread      text COLLATE "C",
  entity      text COLLATE "C", -- entity_type, 0x1f, entity_id
  record      bytea NOT NULL,   -- the rest of the envelope and the chain; see journal.AppendRecord
  PRIMARY KEY (workspace, seq)
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE UNIQUE INDEX events_stream ON events (stream, stream_seq);
CREATE INDEX events_correlation ON events (workspace, correlation, seq);
CREATE INDEX events_run ON events (workspace, run, seq) WHERE run IS NOT NULL;
CREATE INDEX events_step ON events (workspace, step, seq) WHERE step IS NOT NULL;
CREATE INDEX events_thread ON events (workspace, thread, seq) WHERE thread IS NOT NULL;
CREATE INDEX events_entity ON events (workspace, entity, seq) WHERE entity IS NOT NULL;

-- Salt and data lie apart from the envelope, sealed under a key of their own: to redact an event is to destroy that key and this row.
CREATE TABLE bodies (
  workspace  bigint NOT NULL,
  seq        bigint NOT NULL,
  body       bytea NOT NULL,
  generation bigint, -- of the tree that the key is a leaf of; NULL for a body that is not sealed
  PRIMARY KEY (workspace, seq)
);
ALTER TABLE bodies ALTER COLUMN body SET STORAGE EXTERNAL; -- what is sealed cannot be compressed

-- The recorded redactions. A body may go only where one is.
CREATE TABLE redactions (
  workspace bigint NOT NULL,
  seq       bigint NOT NULL,
  by_seq    bigint NOT NULL,   -- seq of the event.redacted
  done      smallint NOT NULL, -- 0 recorded, 1 body and documents are replaced, 2 and their keys are destroyed
  PRIMARY KEY (workspace, seq)
);
CREATE INDEX redactions_open ON redactions (workspace, seq) WHERE done < 2;

-- The keys of documents that have to be destroyed, because what they sealed had data of an event that was redacted.
CREATE TABLE condemned (
  workspace bigint NOT NULL,
  leaf      bigint NOT NULL,
  PRIMARY KEY (workspace, leaf)
);

CREATE TABLE batches (
  workspace bigint NOT NULL,
  key       text COLLATE "C" NOT NULL,
  digest    bytea NOT NULL,
  first     bigint NOT NULL,
  count     integer NOT NULL,
  PRIMARY KEY (workspace, key)
);

CREATE TABLE event_keys (
  workspace bigint NOT NULL,
  key       text COLLATE "C" NOT NULL,
  seq       bigint NOT NULL,
  PRIMARY KEY (workspace, key)
);

CREATE TABLE projections (
  no      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name    text COLLATE "C" NOT NULL UNIQUE,
  version integer NOT NULL
);

-- Bodies of documents are sealed too: what is updated or deleted here stays in dead rows, in the write-ahead log and on standbys for long.
-- Keys and values are bytes, for a document may name what no text of PostgreSQL can hold.
CREATE TABLE documents (
  projection bigint NOT NULL,
  workspace  bigint NOT NULL,
  key        bytea NOT NULL,
  leaf       bigint NOT NULL, -- number of the document and of the key that seals it
  version    bigint NOT NULL,
  seq        bigint NOT NULL,
  body       bytea NOT NULL,
  generation bigint,
  PRIMARY KEY (projection, workspace, key)
) WITH (fillfactor = 70);
ALTER TABLE documents ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE entries (
  projection bigint NOT NULL,
  workspace  bigint NOT NULL,
  name       text COLLATE "C" NOT NULL,
  value      bytea NOT NULL,
  key        bytea NOT NULL,
  PRIMARY KEY (projection, workspace, name, value, key)
);

-- enter is how a transaction begins that writes: who changes projections, or takes the database for himself, waits for it, and makes others
-- wait. A reign of 0 is that of daemons that share a database which nobody has ever had for himself.
-- +goose StatementBegin
CREATE FUNCTION enter(folding bigint, reigning bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now log%ROWTYPE;
BEGIN
  LOCK TABLE projections IN ROW SHARE MODE;
  SELECT * INTO now FROM log;
  IF now.reign <> reigning THEN
    RAISE EXCEPTION 'another daemon has taken the database' USING ERRCODE = 'AGB04';
  END IF;
  IF folding <> 0 AND now.folds <> folding THEN
    RAISE EXCEPTION 'the documents are folded by other definitions' USING ERRCODE = 'AGB02';
  END IF;
END $$;
-- +goose StatementEnd

-- advance takes the row of a workspace from one event to another, and with it the right to append what lies between. It fails where the log
-- is not as the caller believes: AGB01 where the workspace has moved on, AGB02 where documents are folded by other definitions, AGB04 where
-- another daemon has taken the database for itself.
-- +goose StatementBegin
CREATE FUNCTION advance(ws bigint, was bigint, was_epoch bigint, folding bigint, reigning bigint, becomes bigint, hash bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM enter(folding, reigning);
  UPDATE workspaces SET head = becomes, last = hash WHERE no = ws AND head = was AND epoch = was_epoch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the workspace has moved on' USING ERRCODE = 'AGB01';
  END IF;
END $$;
-- +goose StatementEnd

-- The log is append-only: not by convention, but for whoever reaches this database.
-- +goose StatementBegin
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'AGB03';
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION only_redacted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM redactions r WHERE r.workspace = OLD.workspace AND r.seq = OLD.seq) THEN
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'AGB03';
  END IF;
  RETURN OLD;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION only_further() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.workspace <> OLD.workspace OR NEW.seq <> OLD.seq OR NEW.by_seq <> OLD.by_seq OR NEW.done < OLD.done THEN
    RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'AGB03';
  END IF;
  RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON events EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR TRUNCATE ON bodies EXECUTE FUNCTION append_only();
CREATE TRIGGER only_redacted BEFORE DELETE ON bodies FOR EACH ROW EXECUTE FUNCTION only_redacted();
CREATE TRIGGER append_only BEFORE DELETE OR TRUNCATE ON redactions EXECUTE FUNCTION append_only();
CREATE TRIGGER only_further BEFORE UPDATE ON redactions FOR EACH ROW EXECUTE FUNCTION only_further();
-- Not even a session that plays a replica leaves them out.
ALTER TABLE events ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE bodies ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE bodies ENABLE ALWAYS TRIGGER only_redacted;
ALTER TABLE redactions ENABLE ALWAYS TRIGGER append_only;
ALTER TABLE redactions ENABLE ALWAYS TRIGGER only_further;
