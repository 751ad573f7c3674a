-- The log of Agentbox, version 5. A place is the number of the workspace times 2^40 plus seq, so that rows lie in the order of their
-- workspace and the primary key is the place in it.

CREATE TABLE workspaces (
  no      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  head    INTEGER NOT NULL, -- seq of its last event
  indexed INTEGER NOT NULL, -- seq of the last event that the postings know
  flushed INTEGER NOT NULL, -- seq of the last event that the documents, their entries and the ends of streams know; see flush.go
  last    BLOB NOT NULL     -- event_hash of its last event
) STRICT;

-- The end of every stream is kept apart from the events, so that a missing end is seen. Of the events after `flushed` only the last one of
-- the workspace is.
CREATE TABLE streams (
  no        INTEGER PRIMARY KEY,
  workspace INTEGER NOT NULL,
  type      TEXT NOT NULL,
  id        TEXT NOT NULL,
  head      INTEGER NOT NULL, -- stream_seq of its last event
  hash      BLOB NOT NULL,    -- and its event_hash
  UNIQUE (workspace, type, id)
) STRICT;

CREATE TABLE types (
  no   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE events (
  place       INTEGER PRIMARY KEY,
  stream      INTEGER NOT NULL,
  stream_seq  INTEGER NOT NULL,
  type        INTEGER NOT NULL,
  id          BLOB NOT NULL,    -- the 16 bytes of the UUID
  recorded_at INTEGER NOT NULL, -- microseconds since 1970
  correlation TEXT NOT NULL,
  run         TEXT,
  entity      TEXT,             -- entity_type, 0x1f, entity_id
  record      BLOB NOT NULL     -- the rest of the envelope and the chain; see record.go
) STRICT;
CREATE UNIQUE INDEX events_id ON events (id);

-- Where the events of a stream (kind 1), a run (2), a correlation (3), an entity (4), a step (5) and a thread (6), and those
-- that name an event as their cause (7), lie: places, in pieces. Events that come one after
-- another belong to many of them, so that each would touch pages of its own; hence the pieces are written for a thousand events at a time,
-- and who looks reads the few events behind `indexed` themselves.
CREATE TABLE postings (
  kind   INTEGER NOT NULL,
  key    TEXT NOT NULL,    -- the number of the stream, or the text itself
  first  INTEGER NOT NULL, -- stream_seq of the first event for a stream, else its place
  places BLOB NOT NULL,    -- uvarints: the first place, then the steps from each to the next
  PRIMARY KEY (kind, key, first)
) STRICT, WITHOUT ROWID;

-- Salt (16 bytes) and data lie apart from the envelope, sealed under a key of their own: to redact an event is to destroy that key and
-- this row. See seal.go.
CREATE TABLE bodies (
  place      INTEGER PRIMARY KEY,
  body       BLOB NOT NULL,
  generation INTEGER -- of the tree that the key is a leaf of; NULL for a body that is not sealed
) STRICT;

-- The recorded redactions. A body may go only where one is.
CREATE TABLE redactions (
  place INTEGER PRIMARY KEY, -- of the event that is redacted
  by    INTEGER NOT NULL,    -- place of the event.redacted
  done  INTEGER NOT NULL     -- 0 recorded, 1 the data are destroyed, 2 and nothing of them is left in the write-ahead log
) STRICT;
CREATE INDEX redactions_open ON redactions (place) WHERE done < 2;

CREATE TABLE batches (
  workspace INTEGER NOT NULL,
  key       TEXT NOT NULL,
  digest    BLOB NOT NULL,
  first     INTEGER NOT NULL, -- seq of the batch's first event
  count     INTEGER NOT NULL,
  PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_keys (
  workspace INTEGER NOT NULL,
  key       TEXT NOT NULL,
  seq       INTEGER NOT NULL,
  PRIMARY KEY (workspace, key)
) STRICT, WITHOUT ROWID;

-- One row per projection; a rebuild makes documents under a new number and swaps it in.
CREATE TABLE projections (
  no      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL UNIQUE,
  version INTEGER NOT NULL
) STRICT;

CREATE TABLE documents (
  no         INTEGER PRIMARY KEY,
  projection INTEGER NOT NULL,
  workspace  INTEGER NOT NULL,
  key        TEXT NOT NULL,
  version    INTEGER NOT NULL,
  seq        INTEGER NOT NULL,
  body       BLOB NOT NULL,
  UNIQUE (projection, workspace, key)
) STRICT;

CREATE TABLE entries (
  projection INTEGER NOT NULL,
  workspace  INTEGER NOT NULL,
  name       TEXT NOT NULL,
  value      TEXT NOT NULL,
  key        TEXT NOT NULL, -- of the document
  PRIMARY KEY (projection, workspace, name, value, key)
) STRICT, WITHOUT ROWID;

-- The log is append-only: not by convention, but for whoever opens this file.
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies WHEN NOT EXISTS (SELECT 1 FROM redactions WHERE place = OLD.place)
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER redactions_no_update BEFORE UPDATE ON redactions WHEN NEW.place <> OLD.place OR NEW.by <> OLD.by OR NEW.done < OLD.done
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER redactions_no_delete BEFORE DELETE ON redactions BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
