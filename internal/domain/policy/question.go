package policy

import (
	"encoding/json"
	"strings"

	"agentbox/internal/domain/fault"
)

// MaxQuestionText is the most bytes that a plain question may have.
const MaxQuestionText = 2_000

// The refusals of a plain question.
var (
	// ErrQuestionEmpty refuses a question that asks nothing.
	ErrQuestionEmpty = fault.New(fault.Invalid, "missing_question", "put the question to the person into `question`")
	// ErrQuestionTooLong refuses a question of more than MaxQuestionText.
	ErrQuestionTooLong = fault.New(fault.Invalid, "question_too_long", "a question may have at most %d bytes of UTF-8", MaxQuestionText)
	// ErrQuestionWithAction refuses a plain question together with an action.
	ErrQuestionWithAction = fault.New(fault.Invalid, "question_with_action",
		"a plain question is an approval of its own; send `question` or an action, not both").
		With("What the action is for belongs into `title` or `context`.")
	// ErrQuestionWithTarget refuses a question with what only something that is done has.
	ErrQuestionWithTarget = fault.New(fault.Invalid, "question_with_target",
		"a plain question is about a room, a run or the workspace: it has no target, method, tool, request or zone")
	// ErrSubjectStep refuses a step without the run that it belongs to.
	ErrSubjectStep = fault.New(fault.Invalid, "step_without_run", "a step is of a run; send its run_id too")
)

// Questioned returns the request of the action that puts a question to a person.
func Questioned(text string) (json.RawMessage, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, ErrQuestionEmpty
	case len(text) > MaxQuestionText:
		return nil, ErrQuestionTooLong
	}
	raw, err := json.Marshal(map[string]string{"question": text})
	if err != nil {
		return nil, ErrQuestionEmpty
	}
	return Canonicalize(raw)
}

// asked returns the text of a plain question; "" of any other action.
func (a Action) asked() string {
	var said struct {
		Question string `json:"question"`
	}
	if a.Type != QuestionAsk || json.Unmarshal(a.Request, &said) != nil {
		return ""
	}
	return said.Question
}
