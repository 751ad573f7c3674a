-- +goose Up

-- The event that each event names as its cause, so that the effects of an event are found. Of the events of earlier versions only redactions are
-- filled in: few others named a cause, and these are found by their correlation.
ALTER TABLE events ADD causation uuid;
ALTER TABLE events DISABLE TRIGGER append_only;
UPDATE events e SET causation = t.id FROM redactions r JOIN events t ON t.workspace = r.workspace AND t.seq = r.seq
  WHERE e.workspace = r.workspace AND e.seq = r.by_seq;
ALTER TABLE events ENABLE ALWAYS TRIGGER append_only;
CREATE INDEX events_causation ON events (workspace, causation, seq) WHERE causation IS NOT NULL;
