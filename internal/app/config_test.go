package app

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
)

// Members have the shared folder together. Work that an operator does alone is refused while a member works.
func TestAFolderThatIsShared(t *testing.T) {
	c := Default(t.TempDir())
	c.Store, c.Shared = "postgres://x@localhost/y", t.TempDir()
	first, err := datadir.AcquireShared(c.Shared)
	if err != nil {
		t.Fatal(err)
	}
	second, err := datadir.AcquireShared(c.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if own, err := datadir.AcquireAll(c.DataDir, c.Shared); fault.CodeOf(err) != "data_in_use" {
		t.Errorf("an operator beside a member: %v, want data_in_use", err)
		_ = own.Close()
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	own, err := datadir.AcquireAll(c.DataDir, c.Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.AcquireShared(c.Shared); fault.CodeOf(err) != "data_in_use" {
		t.Errorf("a member beside an operator: %v, want data_in_use", err)
	}
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestAStartWithoutItsDatabaseSaysThatItEnds starts a daemon whose database does not answer. It does not say that it goes on trying.
func TestAStartWithoutItsDatabaseSaysThatItEnds(t *testing.T) {
	c := Default(t.TempDir())
	c.Store = "postgres://nobody@127.0.0.1:1/x"
	a, err := Open(t.Context(), c, Clock{}, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("it starts", a.Close())
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != "log_unreadable" || f.Kind != fault.Unavailable || strings.Contains(err.Error(), "again and again") ||
		!strings.Contains(err.Error(), "connection refused") || !strings.Contains(f.Suggestion, "then start it again") {
		t.Errorf("got %v, %+v", err, f)
	}
}

// TestARuleOfRetentionSelectsSomething refuses a rule that would keep data for good by a typing error.
func TestARuleOfRetentionSelectsSomething(t *testing.T) {
	for rule, want := range map[string]string{
		"run.*=30d": "", "file.read=12h": "", "model.*=1m": "", "t*=1d": "",
		"runs.*=30d":      "did you mean run.*?",
		"file.raed=12h":   "did you mean file.read?",
		"messages*=1d":    "did you mean message.*?",
		"tool.*.done=30d": "is not a rule of retention",
	} {
		c := Default("/data")
		c.Retention = []string{rule}
		if err := c.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", rule, err, want)
		}
	}
}

func TestAdvertisedAddresses(t *testing.T) {
	for address, ok := range map[string]bool{
		"": true, "https://a.example": true, "https://a.example:8443/": true, "http://127.0.0.1:7433": true, "http://localhost:1": true,
		"http://[::1]:7433": true,
		"http://a.example":  false, "http://10.0.0.1:7433": false, "a.example": false, "https://a.example/path": false,
		"https://a.example?x=1":       false,
		"https://user:word@a.example": false, "ftp://a.example": false, "https://": false,
	} {
		c := Default("/data")
		c.Store, c.Shared, c.Advertise = "postgres://x@localhost/y", "/shared", address
		if err := c.check(); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
	alone := Default("/data")
	alone.Advertise = "https://a.example"
	if err := alone.check(); err == nil {
		t.Error("a daemon that works alone advertises an address")
	}
}
