package room_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/room"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func told(t *testing.T, typ, about string, data any) event.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return event.Event{StreamSeq: 7, Data: raw, Header: event.Header{
		ID: "evt_1", Type: typ, EntityID: about, Workspace: "ws_dev", Room: "room_1", Thread: "th_1", Principal: "usr_1",
		Actor: event.Actor{Type: "agent", ID: "agt_1"}, OccurredAt: noon,
	}}
}

// folds holds what an event makes of a document, and that one whose data cannot be read is an error.
func folds[T interface{ Evolve(event.Event) (T, error) }](t *testing.T, before T, e event.Event, want T) {
	t.Helper()
	if got, err := before.Evolve(e); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, %v, want %+v", e.Type, got, err, want)
	}
	if e.Type == "x" {
		return
	}
	e.Data = json.RawMessage(`[]`)
	if _, err := before.Evolve(e); err == nil {
		t.Errorf("%s with broken data was folded", e.Type)
	}
	if _, err := room.Remains(e); err == nil && e.Type != room.EventRead {
		t.Errorf("something remains of %s with broken data", e.Type)
	}
}

func TestTheDocumentsOfARoom(t *testing.T) {
	s := func(text string) *string { return &text }
	l := func(names ...string) *[]string { return &names }
	all := room.Context{Prompt: s("p"), Tools: l("t"), Models: l("m"), Memory: s("s")}
	r := room.Room{
		ID: "room_1", Workspace: "ws_dev", Title: "a", Topic: "b", Mode: "c", Lang: "d", ToolPolicy: "e", Mission: "f", Context: all,
		CreatedBy: "usr_1", CreatedAt: noon, UpdatedAt: noon,
	}
	folds(t, room.Room{}, told(t, room.EventCreated, "room_1", room.Created{Room: "room_1", Title: "a", Topic: "b", Mode: "c", Lang: "d",
		ToolPolicy: "e", Mission: "f", Context: all}), r)
	folds(t, r, told(t, "x", "", nil), r)
	changed := r
	changed.Title, changed.Topic, changed.Mode, changed.Lang, changed.ToolPolicy = "A", "B", "C", "D", "E"
	folds(t, r, told(t, room.EventUpdated, "room_1", room.Updated{Title: s("A"), Topic: s("B"), Mode: s("C"), Lang: s("D"),
		ToolPolicy: s("E")}), changed)
	first := room.Default("ws_dev")
	if first.ID != "room_00000000000000000000000000" || first.Workspace != "ws_dev" || first.Title != "default" {
		t.Errorf("the default room: %+v", first)
	}
	first.Topic, first.UpdatedAt = "B", noon
	folds(t, room.Room{}, told(t, room.EventUpdated, "", room.Updated{Topic: s("B")}), first)

	for field, want := range map[string]room.Context{
		room.FieldPrompt: {Tools: all.Tools, Models: all.Models, Memory: all.Memory},
		room.FieldTools:  {Prompt: all.Prompt, Models: all.Models, Memory: all.Memory},
		room.FieldModels: {Prompt: all.Prompt, Tools: all.Tools, Memory: all.Memory},
		room.FieldMemory: {Prompt: all.Prompt, Tools: all.Tools, Models: all.Models},
	} {
		less := r
		less.Context = want
		folds(t, r, told(t, room.EventUpdated, "room_1", room.Updated{Inherit: []string{field}}), less)
		folds(t, room.Defaults{Workspace: "ws_dev", Context: all}, told(t, room.EventDefaultsSet, "",
			room.DefaultsSet{Inherit: []string{field}}), room.Defaults{Workspace: "ws_dev", Context: want, UpdatedAt: noon})
	}
	other := room.Context{Prompt: s("q"), Tools: l("u"), Models: l("n"), Memory: s("")}
	folds(t, room.Defaults{Context: all}, told(t, room.EventDefaultsSet, "", room.DefaultsSet{Context: other}),
		room.Defaults{Workspace: "ws_dev", Context: other, UpdatedAt: noon})
	folds(t, room.Defaults{Context: all}, told(t, "x", "", room.DefaultsSet{Context: other}), room.Defaults{Context: all})
	if got := (room.Context{}).Over(all); !reflect.DeepEqual(got, all) {
		t.Errorf("nothing over all is %+v", got)
	}
	if got := other.Over(all); !reflect.DeepEqual(got, other) {
		t.Errorf("another over all is %+v", got)
	}

	closed := room.Closed
	th := room.Thread{ID: "th_1", Workspace: "ws_dev", Room: "room_1", Title: "a", Status: room.Closed, CreatedBy: "usr_1", CreatedAt: noon,
		UpdatedAt: noon}
	folds(t, room.Thread{}, told(t, room.EventThreadCreated, "th_1", room.ThreadCreated{Title: "a", Status: room.Closed}), th)
	open := th
	open.Status, open.Title = room.Open, ""
	folds(t, room.Thread{}, told(t, room.EventThreadCreated, "th_1", struct{}{}), open)
	old := open
	old.UpdatedAt = time.Time{}
	folds(t, old, told(t, room.EventThreadUpdated, "th_1", room.ThreadUpdated{Title: s("a"), Status: &closed}), th)
	folds(t, old, told(t, "x", "", nil), old)

	m := room.Message{
		ID: "msg_1", Workspace: "ws_dev", Room: "room_1", Thread: "th_1", Parent: "msg_0", SenderType: "agent", Sender: "agt_1", By: "usr_1",
		Content: "c", Lang: "l", Labels: []string{"x"},
		SchemaVersion: "1", Event: "evt_1", StreamSeq: 7, CreatedAt: noon,
	}
	folds(t, room.Message{}, told(t, room.EventMessageCreated, "msg_1", room.MessageCreated{Parent: "msg_0", Content: "c", Lang: "l",
		Labels: []string{"x"}, SchemaVersion: "1"}), m)
	folds(t, m, told(t, "x", "", nil), m)

	folds(t, room.Cursor{StreamSeq: 3}, told(t, room.EventRead, "", room.Read{Room: "room_1", StreamSeq: 5}),
		room.Cursor{Room: "room_1", Principal: "usr_1", StreamSeq: 5, UpdatedAt: noon})
	folds(t, room.Cursor{StreamSeq: 9}, told(t, room.EventRead, "", room.Read{Room: "room_1", StreamSeq: 5}),
		room.Cursor{Room: "room_1", Principal: "usr_1", StreamSeq: 9, UpdatedAt: noon})
	folds(t, room.Cursor{StreamSeq: 9}, told(t, "x", "", room.Read{StreamSeq: 50}), room.Cursor{StreamSeq: 9})
	if got := room.CursorKey("room_1", "usr_1"); got != "room_1/usr_1" {
		t.Errorf("got %s", got)
	}
	if got := room.MarkKey("room_1", 26); got != "room_1/000000000000001a" {
		t.Errorf("got %s", got)
	}
}

// The remains of messages hold no word of anybody, and still say which fields were set.
func TestWhatRemainsOfARoom(t *testing.T) {
	word, status := "w", room.Closed
	list := []string{"w"}
	set, empty, nothing := room.Context{Prompt: &word, Tools: &list, Models: &list, Memory: &word}, "", []string{}
	left := room.Context{Prompt: &empty, Tools: &nothing, Models: &nothing, Memory: &empty}
	for typ, c := range map[string]struct{ data, want any }{
		room.EventCreated: {room.Created{Room: "room_1", Title: "w", Topic: "w", Mode: "w", Context: set},
			room.Created{Room: "room_1", Context: left}},
		room.EventUpdated: {
			room.Updated{Room: "room_1", Title: &word, Topic: &word, Mode: &word, Lang: &word, ToolPolicy: &word, Context: set,
				Inherit: []string{"i"}},
			room.Updated{Room: "room_1", Title: &empty, Topic: &empty, Mode: &empty, Lang: &empty, ToolPolicy: &empty, Context: left,
				Inherit: []string{"i"}},
		},
		room.EventDefaultsSet: {room.DefaultsSet{Context: set, Inherit: []string{"i"}},
			room.DefaultsSet{Context: left, Inherit: []string{"i"}}},
		room.EventThreadCreated: {room.ThreadCreated{Thread: "th_1", Title: "w", Status: room.Open},
			room.ThreadCreated{Thread: "th_1", Status: room.Open}},
		room.EventThreadUpdated: {room.ThreadUpdated{Thread: "th_1", Title: &word, Status: &status},
			room.ThreadUpdated{Thread: "th_1", Title: &empty, Status: &status}},
		room.EventMessageCreated: {room.MessageCreated{Message: "msg_1", Thread: "th_1", Parent: "msg_0", SenderType: "user", Sender: "usr_1",
			Content: "w", Labels: list}, room.MessageCreated{Message: "msg_1", Thread: "th_1", Parent: "msg_0", SenderType: "user",
			Sender: "usr_1"}},
		room.EventRead: {room.Read{Room: "room_1"}, nil},
	} {
		if got, err := room.Remains(told(t, typ, "", c.data)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", typ, got, err, c.want)
		}
	}
	if got, err := room.Remains(told(t, room.EventUpdated, "", room.Updated{Room: "room_1"})); err != nil ||
		!reflect.DeepEqual(got, room.Updated{Room: "room_1"}) {
		t.Errorf("what was left alone: got %+v, %v", got, err)
	}
}

// Each bound of what is said of rooms and threads, and in messages, holds at its edge.
func TestTheBoundsOfWhatIsSaid(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	p := func(text string) *string { return &text }
	many := func(n int, name string) *[]string {
		list := make([]string, n)
		for i := range list {
			list[i] = name
		}
		return &list
	}
	status := func(s room.Status) *room.Status { return &s }
	for name, c := range map[string]struct {
		said interface{ Check() error }
		code string
	}{
		"a room":                     {room.Created{Title: "a"}, ""},
		"the longest title":          {room.Created{Title: x(room.MaxTitle)}, ""},
		"a longer title":             {room.Created{Title: x(room.MaxTitle + 1)}, "invalid_title"},
		"a blank title":              {room.Created{Title: " "}, "invalid_title"},
		"a title that is not a text": {room.Created{Title: "\xff"}, "invalid_title"},
		"a title of two lines":       {room.Created{Title: "a\nb"}, "invalid_title"},
		"a title with a space":       {room.Created{Title: "a b~"}, ""},
		"a title with DEL":           {room.Created{Title: "a\x7f"}, "invalid_title"},
		"a title with a control":     {room.Created{Title: "a\u009f"}, "invalid_title"},
		"a title with a hard space":  {room.Created{Title: "a\u00a0b"}, ""},
		"a title with a line end":    {room.Created{Title: "a\u2028b"}, "invalid_title"},
		"a title with a paragraph":   {room.Created{Title: "a\u2029b"}, "invalid_title"},
		"the longest mission":        {room.Created{Title: "a", Mission: x(room.MaxWord)}, ""},
		"a longer mission":           {room.Created{Title: "a", Mission: x(room.MaxWord + 1)}, "invalid_field"},
		"the longest topic":          {room.Created{Title: "a", Topic: x(room.MaxTopic)}, ""},
		"a longer topic":             {room.Created{Title: "a", Topic: x(room.MaxTopic + 1)}, "invalid_field"},
		"a topic that is not a text": {room.Created{Title: "a", Topic: "\xff"}, "invalid_field"},
		"a mode of two words":        {room.Created{Title: "a", Mode: "a b"}, "invalid_field"},
		"a mode of all characters":   {room.Created{Title: "a", Mode: "!~"}, ""},
		"a language beyond ASCII":    {room.Created{Title: "a", Lang: "\x7f"}, "invalid_field"},
		"the longest reference":      {room.Created{Title: "a", ToolPolicy: x(room.MaxRef)}, ""},
		"a longer reference":         {room.Created{Title: "a", ToolPolicy: x(room.MaxRef + 1)}, "invalid_field"},
		"the longest prompt":         {room.Created{Title: "a", Context: room.Context{Prompt: p(x(room.MaxPrompt))}}, ""},
		"a longer prompt":            {room.Created{Title: "a", Context: room.Context{Prompt: p(x(room.MaxPrompt + 1))}}, "invalid_field"},
		"a longer memory":            {room.Created{Title: "a", Context: room.Context{Memory: p(x(room.MaxMemory + 1))}}, "invalid_field"},
		"the most tools":             {room.Created{Title: "a", Context: room.Context{Tools: many(room.MaxAllowed, "t")}}, ""},
		"one tool more":              {room.Created{Title: "a", Context: room.Context{Tools: many(room.MaxAllowed+1, "t")}}, "invalid_field"},
		"an empty tool":              {room.Created{Title: "a", Context: room.Context{Tools: many(1, "")}}, "invalid_field"},
		"the longest model":          {room.Created{Title: "a", Context: room.Context{Models: many(1, x(room.MaxName))}}, ""},
		"a longer model":             {room.Created{Title: "a", Context: room.Context{Models: many(1, x(room.MaxName+1))}}, "invalid_field"},

		"no change":                {room.Updated{}, "nothing_to_change"},
		"another title":            {room.Updated{Title: p("a")}, ""},
		"no title":                 {room.Updated{Title: p("")}, "invalid_title"},
		"another topic":            {room.Updated{Topic: p("")}, ""},
		"another mode":             {room.Updated{Mode: p("")}, ""},
		"another language":         {room.Updated{Lang: p("")}, ""},
		"a language of two words":  {room.Updated{Lang: p("a b")}, "invalid_field"},
		"another policy":           {room.Updated{ToolPolicy: p("")}, ""},
		"another prompt":           {room.Updated{Context: room.Context{Prompt: p("")}}, ""},
		"another memory":           {room.Updated{Context: room.Context{Memory: p("")}}, ""},
		"what is inherited":        {room.Updated{Inherit: []string{room.FieldTools}}, ""},
		"what was summed up":       {room.Updated{Inherit: []string{room.FieldMemory}}, ""},
		"a title and a language":   {room.Updated{Title: p("a"), Lang: p("a b")}, "invalid_field"},
		"a good tool and a bad":    {room.Updated{Context: room.Context{Tools: &[]string{"good", "not good"}}}, "invalid_field"},
		"what cannot be inherited": {room.Updated{Inherit: []string{"title"}}, "invalid_field"},

		"no defaults":                   {room.DefaultsSet{}, "nothing_to_change"},
		"defaults":                      {room.DefaultsSet{Context: room.Context{Memory: p("")}}, ""},
		"defaults that are inherited":   {room.DefaultsSet{Inherit: []string{room.FieldMemory}}, ""},
		"defaults that cannot be":       {room.DefaultsSet{Inherit: []string{"x"}}, "invalid_field"},
		"a thread":                      {room.ThreadCreated{Title: "a", Status: room.Open}, ""},
		"a closed thread":               {room.ThreadCreated{Title: "a", Status: room.Closed}, ""},
		"a thread of no status":         {room.ThreadCreated{Title: "a"}, "invalid_status"},
		"a thread without a title":      {room.ThreadCreated{Status: room.Open}, "invalid_title"},
		"no change of a thread":         {room.ThreadUpdated{}, "nothing_to_change"},
		"another title of a thread":     {room.ThreadUpdated{Title: p("a")}, ""},
		"no title of a thread":          {room.ThreadUpdated{Title: p("")}, "invalid_title"},
		"another status":                {room.ThreadUpdated{Status: status(room.Closed)}, ""},
		"a status that is none":         {room.ThreadUpdated{Status: status("shut"), Title: p("a")}, "invalid_status"},
		"a title and a status":          {room.ThreadUpdated{Status: status(room.Open), Title: p("")}, "invalid_title"},
		"a message":                     {room.MessageCreated{Content: "a", Lang: "en", SchemaVersion: "1", Labels: []string{"a b"}}, ""},
		"a blank message":               {room.MessageCreated{Content: " \n"}, "missing_content"},
		"the longest message":           {room.MessageCreated{Content: x(room.MaxContent)}, ""},
		"a longer message":              {room.MessageCreated{Content: x(room.MaxContent + 1)}, "message_too_large"},
		"a message that is not a text":  {room.MessageCreated{Content: "a\xff"}, "invalid_field"},
		"the most labels":               {room.MessageCreated{Content: "a", Labels: *many(room.MaxLabels, "l")}, ""},
		"one label more":                {room.MessageCreated{Content: "a", Labels: *many(room.MaxLabels+1, "l")}, "invalid_field"},
		"the longest label":             {room.MessageCreated{Content: "a", Labels: []string{x(room.MaxWord)}}, ""},
		"a longer label":                {room.MessageCreated{Content: "a", Labels: []string{x(room.MaxWord + 1)}}, "invalid_field"},
		"a blank label":                 {room.MessageCreated{Content: "a", Labels: []string{" "}}, "invalid_field"},
		"a label of two lines":          {room.MessageCreated{Content: "a", Labels: []string{"a\rb"}}, "invalid_field"},
		"a language of a message":       {room.MessageCreated{Content: "a", Lang: "a b"}, "invalid_field"},
		"a schema version of two words": {room.MessageCreated{Content: "a", SchemaVersion: "a b"}, "invalid_field"},
	} {
		if err := c.said.Check(); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
	}
	for name, c := range map[string]struct {
		u    room.Updated
		want bool
	}{
		"a title": {room.Updated{Title: p("a")}, false}, "a tool policy": {room.Updated{ToolPolicy: p("a")}, true},
		"a prompt":            {room.Updated{Context: room.Context{Prompt: p("")}}, true},
		"tools":               {room.Updated{Context: room.Context{Tools: many(0, "")}}, true},
		"models":              {room.Updated{Context: room.Context{Models: many(0, "")}}, true},
		"memory":              {room.Updated{Context: room.Context{Memory: p("")}}, false},
		"inherited memory":    {room.Updated{Inherit: []string{room.FieldMemory}}, false},
		"an inherited prompt": {room.Updated{Inherit: []string{room.FieldMemory, room.FieldPrompt}}, true},
	} {
		if got := c.u.Configures(); got != c.want {
			t.Errorf("%s configures: %t", name, got)
		}
	}
	if err := (room.MessageCreated{}).Check(); !errors.Is(err, room.ErrNoContent) {
		t.Errorf("nothing: %v", err)
	}
}
