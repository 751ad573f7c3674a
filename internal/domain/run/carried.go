package run

import "io"

// Limits of the files that a transcript carries: those with which its run began.
const (
	MaxCarriedContent = 16 << 20 // bytes of the files of a snapshot that a transcript carries
	MaxCarriedArchive = 20 << 20 // bytes of the archive in which they are, as it is read back
	filesPiece        = 1 << 20  // bytes of the archive in one line
)

// FilesPiece is a piece of the tar.gz archive of the files with which a run began. The pieces are in order; the last one is empty.
type FilesPiece struct {
	Offset  int64  `json:"offset"`
	Data    []byte `json:"data,omitempty"`
	Omitted int    `json:"omitted,omitempty"` // in the last piece: how many files policy kept out of the archive
}

// Proof shows that the events of a transcript are in the log that a checkpoint was signed for.
type Proof struct {
	Checkpoint string      `json:"checkpoint"` // the C2SP note
	PublicKey  string      `json:"public_key"` // that verifies it; a careful reader gets it from elsewhere
	Inclusions []Inclusion `json:"inclusions"` // of the events that the checkpoint covers, in order
}

// Inclusion is the proof of one event.
type Inclusion struct {
	Seq    uint64   `json:"seq"`
	Hashes []string `json:"hashes"` // in base64, from the leaf to the root
}

// Files returns a writer of the archive of the files with which the run began, and what writes its end.
func (t *TranscriptWriter) Files() (archive io.Writer, end func(omitted int) error) {
	p := &pieces{t: t}
	return p, p.end
}

// Proof writes the proof of the events.
func (t *TranscriptWriter) Proof(p Proof) error { return t.line(TranscriptLine{Proof: &p}) }

// pieces cuts an archive into lines.
type pieces struct {
	t      *TranscriptWriter
	offset int64
	held   []byte
}

// Write implements io.Writer.
func (p *pieces) Write(raw []byte) (int, error) {
	n := len(raw)
	for len(raw) > 0 {
		take := min(len(raw), filesPiece-len(p.held))
		p.held, raw = append(p.held, raw[:take]...), raw[take:]
		if len(p.held) == filesPiece {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (p *pieces) flush() error {
	if len(p.held) == 0 {
		return nil
	}
	err := p.t.line(TranscriptLine{Files: &FilesPiece{Offset: p.offset, Data: p.held}})
	p.offset, p.held = p.offset+int64(len(p.held)), p.held[:0]
	return err
}

func (p *pieces) end(omitted int) error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.t.line(TranscriptLine{Files: &FilesPiece{Offset: p.offset, Omitted: omitted}})
}

// piece takes a piece of the archive in its place.
func (t *Transcript) piece(p FilesPiece) error {
	if p.Offset != int64(len(t.Files)) {
		return damaged("a piece of its files stands at %d and belongs to %d", len(t.Files), p.Offset)
	}
	if len(t.Files)+len(p.Data) > MaxCarriedArchive {
		return damaged("its files are an archive of more than %d bytes", MaxCarriedArchive)
	}
	t.Files, t.Omitted = append(t.Files, p.Data...), t.Omitted+p.Omitted
	return nil
}

// Like reports whether two outcomes say the same of how it came to the result.
func (o Outcome) Like(other Outcome) bool {
	return o.Index == other.Index && o.ID == other.ID && o.Decision == other.Decision && o.Reason == other.Reason &&
		o.Answer == other.Answer &&
		o.BegunAt.Equal(other.BegunAt) && o.EndedAt.Equal(other.EndedAt)
}
