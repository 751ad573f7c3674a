package incident

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
)

// Check returns the data to record of a new incident. The severity is medium unless it is set.
func (o Opened) Check() (Opened, error) {
	o.Title = strings.TrimSpace(o.Title)
	if o.Title == "" || len(o.Title) > MaxTitle || !utf8.ValidString(o.Title) {
		return o, ErrMissingTitle
	}
	switch o.Severity {
	case "":
		o.Severity = Medium
	case Low, Medium, High, Critical:
	default:
		return o, ErrInvalidSeverity
	}
	if len(o.Key) > MaxKey || !utf8.ValidString(o.Key) {
		return o, ErrInvalidKey
	}
	if !fits(o.Category, MaxWord) || !fits(o.EntityType, MaxWord) || !fits(o.EntityID, MaxEntity) {
		return o, ErrTooLong
	}
	var err error
	o.Details, err = value(o.Details)
	if err != nil {
		return o, err
	}
	if len(o.Details) > 0 && o.Details[0] != '{' {
		return o, ErrInvalidDetails
	}
	return o, nil
}

// Analyse decides the analysis of the root cause. A later analysis replaces it while the incident is open.
func (i Incident) Analyse(summary string, analysis json.RawMessage) (RCAUpdated, error) {
	analysis, err := value(analysis)
	switch {
	case err != nil:
		return RCAUpdated{}, err
	case !fits(summary, MaxText):
		return RCAUpdated{}, ErrTooLong
	case strings.TrimSpace(summary) == "" && (len(analysis) == 0 || blank[string(analysis)]):
		return RCAUpdated{}, ErrMissingRCA
	case i.Status == Closed:
		return RCAUpdated{}, ErrClosed
	}
	return RCAUpdated{Incident: i.ID, Summary: summary, Analysis: analysis}, nil
}

// blank are canonical values without content.
var blank = map[string]bool{`""`: true, `{}`: true, `[]`: true}

// Learn decides a learning.
func (i Incident) Learn(note string, tags []string) (LearningLogged, error) {
	if strings.TrimSpace(note) == "" {
		return LearningLogged{}, ErrMissingNote
	}
	if !fits(note, MaxText) || len(tags) > MaxTags {
		return LearningLogged{}, ErrTooLong
	}
	for _, tag := range tags {
		if tag == "" || !fits(tag, MaxWord) {
			return LearningLogged{}, ErrTooLong
		}
	}
	switch {
	case i.Status == Closed:
		return LearningLogged{}, ErrClosed
	case len(i.Learning) >= MaxLearning:
		return LearningLogged{}, ErrTooMany
	}
	return LearningLogged{Incident: i.ID, Note: note, Tags: tags}, nil
}

// Close decides the end of an incident. It requires an analysis of the root cause and a learning.
func (i Incident) Close(reason string) (Ended, error) {
	switch {
	case !fits(reason, policy.MaxReasonBytes):
		return Ended{}, policy.ErrReasonTooLong
	case i.Status == Closed:
		return Ended{}, ErrAlreadyClosed
	case i.RCA == nil:
		return Ended{}, ErrWithoutRCA
	case len(i.Learning) == 0:
		return Ended{}, ErrWithoutLearning
	}
	return Ended{Incident: i.ID, Reason: reason}, nil
}

func fits(text string, most int) bool { return len(text) <= most && utf8.ValidString(text) }

// value returns the canonical form of a caller's JSON; nil for null.
func value(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	canonical, err := policy.Canonicalize(raw)
	if err == nil && len(canonical) > MaxDetails {
		err = ErrInvalidDetails
	}
	return canonical, err
}
