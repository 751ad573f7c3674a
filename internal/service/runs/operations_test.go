package runs

import (
	"testing"

	"agentbox/internal/domain/run"
)

// TestEveryOperationIsExecuted holds that each type of operation can be asked for and done, and that nothing else can.
func TestEveryOperationIsExecuted(t *testing.T) {
	for _, typ := range run.OpTypes() {
		if v := verbs[typ]; v.ask == nil || v.do == nil {
			t.Errorf("%s: asks %t, does %t; add a row to verbs", typ, v.ask != nil, v.do != nil)
		}
	}
	for typ := range verbs {
		if _, ok := run.SpecOf(typ); !ok {
			t.Errorf("%s is executed and is no operation", typ)
		}
	}
}
