package run

import (
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
)

// Check reports the first limit that the operation's values break. Paths and encoded content are checked where they are resolved.
func (op Operation) Check() error {
	if op.Type == OpMalformed {
		return invalid("%s", op.Malformed)
	}
	spec, ok := SpecOf(op.Type)
	switch {
	case !ok:
		return invalid("type %.64q is unknown; it is one of %s", op.Type, strings.Join(OpTypes(), ", "))
	case spec.check == nil:
		return nil
	}
	return spec.check(op)
}

func (op Operation) checkMessage() error {
	if n := utf8.RuneCountInString(op.Content); n > MaxMessageRunes {
		return invalid("content has %d characters; a message may have %d", n, MaxMessageRunes)
	}
	return nil
}

func (op Operation) checkEncoding() error {
	if op.Encoding != "" && op.Encoding != "utf-8" && op.Encoding != "base64" {
		return invalid("encoding %.32q is unknown; it is utf-8 or base64", op.Encoding)
	}
	return nil
}

func (op Operation) checkEdits() error {
	if len(op.Edits) == 0 {
		return invalid("edits is empty; send at least one")
	}
	if len(op.Edits) > MaxEdits {
		return invalid("%d edits are more than the %d that one operation may hold", len(op.Edits), MaxEdits)
	}
	size := 0
	for i, e := range op.Edits {
		if e.Old == "" {
			return invalid("edits[%d].oldContent is empty; it is the text to be replaced", i)
		}
		size += len(e.Old) + len(e.New)
	}
	if size > MaxContentBytes {
		return invalid("the edits hold %d bytes; an operation may hold %d", size, MaxContentBytes)
	}
	return nil
}

func (op Operation) checkShell() error {
	if strings.TrimSpace(op.Command) == "" {
		return invalid("command is empty")
	}
	if n := utf8.RuneCountInString(op.Command); n > MaxCommandRunes {
		return invalid("command has %d characters; at most %d are allowed: write it to a file and run that", n, MaxCommandRunes)
	}
	if strings.ContainsRune(op.Command, 0) {
		return invalid("command holds a NUL character")
	}
	if t := op.TimeoutMS; t != nil && (*t < MinTimeoutMS || *t > MaxTimeoutMS) {
		return invalid("timeout is %d ms; it may be %d to %d", *t, MinTimeoutMS, MaxTimeoutMS)
	}
	if err := op.checkSide(); err != nil {
		return err
	}
	if len(op.Env) > MaxEnv {
		return invalid("env has %d variables; at most %d are allowed", len(op.Env), MaxEnv)
	}
	size := 0
	for name, value := range op.Env {
		if !validName(name) {
			return invalid("env has a variable %.64q; names are letters, digits and _, and do not begin with a digit", name)
		}
		if strings.ContainsRune(value, 0) {
			return invalid("env variable %s holds a NUL character", name)
		}
		if policy.IsMask(value) {
			return invalid("env variable %s is the mask of a secret: leave it out, for every command gets the space's own variables", name)
		}
		size += len(name) + len(value)
	}
	if size > MaxEnvBytes {
		return invalid("env holds %d bytes; at most %d are allowed", size, MaxEnvBytes)
	}
	return nil
}

func validName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 256
}

// Summary is the operation in one short line, for lists and timelines; it holds no content.
func (op Operation) Summary() string {
	switch op.Type {
	case OpShell:
		return clip(op.Command, 120)
	case OpMessage:
		return clip(op.Content, 120)
	}
	return clip(op.Path, 255)
}

// clip cuts a text after n characters and marks the cut.
func clip(s string, n int) string {
	count := 0
	for i := range s {
		if count++; count > n {
			return s[:i] + "…"
		}
	}
	return s
}
