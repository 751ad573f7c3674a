-- +goose Up

-- The daemons of a database that work on it together. One that works alone has a reign for itself; members share theirs.
ALTER TABLE log ADD together boolean NOT NULL DEFAULT false; -- the reign is one of members
ALTER TABLE log ADD destroyed bigint NOT NULL DEFAULT 0;     -- rises each time keys are destroyed

CREATE TABLE members (
  no        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- and its advisory lock, which it holds while it lives
  node      text COLLATE "C" NOT NULL UNIQUE,
  address   text NOT NULL,                 -- where the others reach it
  since     bigint NOT NULL,               -- when it joined last, in microseconds since 1970, by its own clock
  epoch     bigint NOT NULL DEFAULT 1,     -- rises each time it joins
  leads     boolean NOT NULL DEFAULT false, -- it was the last to become the leader
  destroyed bigint NOT NULL DEFAULT 0,     -- of log.destroyed: up to which it has dropped what was destroyed
  removed   boolean NOT NULL DEFAULT false -- an operator gave it up: it writes nothing more
);
CREATE UNIQUE INDEX members_leads ON members (leads) WHERE leads;

DROP FUNCTION advance(bigint, bigint, bigint, bigint, bigint, bigint, bytea);
DROP FUNCTION enter(bigint, bigint);

-- enter as it was, and AGB05 for a member that was given up; 0 is no member.
-- +goose StatementBegin
CREATE FUNCTION enter(folding bigint, reigning bigint, member bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now log%ROWTYPE;
BEGIN
  LOCK TABLE projections IN ROW SHARE MODE;
  SELECT * INTO now FROM log;
  IF now.reign <> reigning THEN
    RAISE EXCEPTION 'another daemon has taken the database' USING ERRCODE = 'AGB04';
  END IF;
  IF member <> 0 AND (SELECT removed FROM members WHERE no = member) THEN
    RAISE EXCEPTION 'this member was given up' USING ERRCODE = 'AGB05';
  END IF;
  IF folding <> 0 AND now.folds <> folding THEN
    RAISE EXCEPTION 'the documents are folded by other definitions' USING ERRCODE = 'AGB02';
  END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION advance(ws bigint, was bigint, was_epoch bigint, folding bigint, reigning bigint, member bigint, becomes bigint, hash bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM enter(folding, reigning, member);
  UPDATE workspaces SET head = becomes, last = hash WHERE no = ws AND head = was AND epoch = was_epoch;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the workspace has moved on' USING ERRCODE = 'AGB01';
  END IF;
END $$;
-- +goose StatementEnd
