package witness

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/sumdb/note"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/merkle"
)

// Log is an installation whose checkpoints a witness keeps.
type Log struct {
	Key  merkle.PublicKey
	Kept merkle.Store
}

// Handler is a witness: it keeps the newest checkpoint of each log that it knows, never one that does not continue the one before, and
// signs what it keeps.
type Handler struct {
	logs     map[string]Log // by the installation's name
	cosigner *merkle.Cosigner
	logger   *slog.Logger

	mu sync.Mutex // held while a checkpoint is compared and kept
}

// NewHandler returns a witness of the given logs.
func NewHandler(logs []Log, cosigner *merkle.Cosigner, logger *slog.Logger) *Handler {
	h := &Handler{logs: map[string]Log{}, cosigner: cosigner, logger: logger}
	for _, log := range logs {
		h.logs[log.Key.Name()] = log
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == addPath:
		h.add(w, r)
	case r.Method == http.MethodGet && r.URL.Path == latestPath:
		h.latest(w, r)
	default:
		http.Error(w, "POST "+addPath+" or GET "+latestPath+"?origin=", http.StatusNotFound)
	}
}

// refusal is an answer that is not 200.
type refusal struct {
	status int
	text   string
	size   bool // text is a size
}

// Error returns the text.
func (r *refusal) Error() string { return r.text }

func (h *Handler) add(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		http.Error(w, "the request is too long or ended before its time", http.StatusBadRequest)
		return
	}
	lines, err := h.accept(r.Context(), string(body))
	if no, ok := errors.AsType[*refusal](err); ok {
		w.Header().Set("Content-Type", plainText)
		if no.size {
			w.Header().Set("Content-Type", sizeType)
		}
		w.WriteHeader(no.status)
		_, _ = io.WriteString(w, no.text+"\n") // the caller has gone
		return
	}
	if err != nil {
		h.logger.Error("keep a checkpoint", "code", "checkpoint_not_kept", "error", err)
		http.Error(w, "the witness cannot keep it", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", plainText)
	_, _ = w.Write(lines) // the caller has gone
}

// accept follows the protocol for one request, and returns the witness's signature lines.
func (h *Handler) accept(ctx context.Context, body string) ([]byte, error) {
	old, path, signed, err := parse(body)
	if err != nil {
		return nil, &refusal{status: http.StatusBadRequest, text: err.Error()}
	}
	claim, err := merkle.Peek(signed)
	if err != nil {
		return nil, &refusal{status: http.StatusBadRequest, text: "that is not a checkpoint"}
	}
	log, known := h.logs[claim.Installation()]
	if !known {
		return nil, &refusal{status: http.StatusNotFound, text: "this witness does not know the log"}
	}
	c, err := merkle.Open(signed, log.Key)
	if err != nil {
		return nil, &refusal{status: http.StatusForbidden, text: "the log has not signed the checkpoint"}
	}
	ws, err := c.Workspace()
	if err != nil {
		return nil, &refusal{status: http.StatusNotFound, text: "this witness does not know the log"}
	}
	if old > c.Size {
		return nil, &refusal{status: http.StatusBadRequest, text: tooFarAhead}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var kept merkle.Checkpoint
	held, err := log.Kept.Checkpoint(ctx, ws)
	if err == nil {
		kept, err = merkle.Open(held, log.Key)
	} else if errors.Is(err, merkle.ErrNone) {
		kept.Root, err = merkle.RootAt(ctx, log.Kept, ws, 0)
	}
	if err != nil {
		return nil, err
	}
	stale := &refusal{status: http.StatusConflict, text: strconv.FormatUint(kept.Size, 10), size: true}
	if old != kept.Size || old == c.Size && kept.Root != c.Root {
		return nil, stale
	}
	if err := merkle.CheckConsistency(old, kept.Root, c, path); err != nil {
		return nil, &refusal{status: http.StatusUnprocessableEntity, text: "the proof does not hold"}
	}
	if err := log.Kept.Keep(ctx, ws, signed); err != nil {
		return nil, err
	}
	return h.sign(signed)
}

func (h *Handler) sign(signed []byte) ([]byte, error) {
	text, _, _ := strings.Cut(string(signed), "\n\n")
	own, err := note.Sign(&note.Note{Text: text + "\n"}, h.cosigner)
	if err != nil {
		return nil, err
	}
	_, lines, _ := strings.Cut(string(own), "\n\n")
	return []byte(lines), nil
}

// parse takes a request apart: `old N`, the hashes of the proof, an empty line, the checkpoint.
func parse(body string) (old uint64, path []merkle.Hash, signed []byte, err error) {
	head, rest, ok := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	number, isOld := strings.CutPrefix(lines[0], "old ")
	if !ok || !isOld || len(lines)-1 > maxPath {
		return 0, nil, nil, errors.New("the request is: old SIZE, at most 63 hashes, an empty line, a checkpoint")
	}
	old, err = strconv.ParseUint(number, 10, 63)
	if err != nil || strconv.FormatUint(old, 10) != number {
		return 0, nil, nil, fmt.Errorf("%.40q is not the size of a tree", number)
	}
	for _, line := range lines[1:] {
		raw, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(raw) != len(merkle.Hash{}) {
			return 0, nil, nil, fmt.Errorf("%.60q is not a hash", line)
		}
		path = append(path, merkle.Hash(raw))
	}
	return old, path, []byte(rest), nil
}

func (h *Handler) latest(w http.ResponseWriter, r *http.Request) {
	claim := merkle.Checkpoint{Origin: r.URL.Query().Get("origin")}
	ws, err := claim.Workspace()
	log, known := h.logs[claim.Installation()]
	if err != nil || !known {
		http.Error(w, "this witness does not know the log", http.StatusNotFound)
		return
	}
	held, err := log.Kept.Checkpoint(r.Context(), ws)
	if err == nil {
		var lines []byte
		if lines, err = h.sign(held); err == nil {
			w.Header().Set("Content-Type", plainText)
			_, _ = w.Write(append(held, lines...)) // the caller has gone
			return
		}
	}
	if fault.KindOf(err) == fault.NotFound {
		http.Error(w, "nothing was brought of this log yet", http.StatusNotFound)
		return
	}
	h.logger.Error("read a checkpoint", "code", "checkpoint_not_read", "error", err)
	http.Error(w, "the witness cannot read it", http.StatusInternalServerError)
}
