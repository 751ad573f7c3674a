package auditapi

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/service/query"
)

// FuzzEventFilter reads the query of a stream of events. An accepted query selects by its own values and by types that exist. The rest is
// refused as a bad request.
func FuzzEventFilter(f *testing.F) {
	f.Add("stream_type=room&stream_id=room_1&event_types=message.created,room.created&run_id=run_1")
	f.Add("event_type=message.creatd")
	f.Add("event_types=,,&subject_agent_id=a&subject_principal_id=b")
	f.Add("event_types=" + strings.Repeat("room.created,", 30))
	f.Add("space_id=%ff&room_id=%00")
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		filter := filterOf(p)
		q, err := filter.query()
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || fault.CodeOf(err) == "internal_error" {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		for _, typ := range q.Types {
			if !slices.Contains(query.EventTypes(), typ) {
				t.Errorf("%q selects the type %q", raw, typ)
			}
		}
		if string(q.Room) != p.Get("room_id") || string(q.Run) != p.Get("run_id") || q.Stream.ID != p.Get("stream_id") ||
			string(q.Space) != p.Get("space_id") {
			t.Errorf("%q selects %+v", raw, q)
		}
		if sent := p.Get("event_types"); sent != "" && len(q.Types) == 0 {
			t.Errorf("%q selects every type", raw)
		}
	})
}
