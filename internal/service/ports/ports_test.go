package ports_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/token"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/ports"
	"agentbox/internal/service/spaces"
	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// program is the init, built once for all tests of this package.
var program []byte

func TestMain(m *testing.M) {
	var err error
	if program, err = inittest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// harbour is the service with a space.
type harbour struct {
	*testkit.Stack
	ports *ports.Service
	space id.Space
}

func open(t *testing.T) *harbour {
	t.Helper()
	s := testkit.Open(t, testkit.Options{Program: program})
	p := ports.New(ports.Parts{
		Log: s.Log, Docs: s.Docs, Gate: s.Gate, Spaces: s.Spaces.Living, Clock: s.Clock, IDs: s.IDs, Key: []byte(strings.Repeat("k", 32)),
		Logger: slog.New(slog.DiscardHandler), System: principal.System,
	})
	s.Spaces.SetDoors(p)
	s.Gate.KillSwitch.OnHalt(p.Halt)
	return &harbour{s, p, s.Space().ID}
}

func (h *harbour) address(port int, ttl time.Duration) ports.Address {
	return ports.Address{Workspace: testkit.WS, Space: h.space, Port: port, TTL: ttl}
}

// preview opens a port and returns the secret of its address.
func (h *harbour) preview(port int) (*ports.Exposure, string) {
	h.T.Helper()
	x, secret, err := h.ports.Preview(h.Context(), h.Origin, h.address(port, time.Hour))
	if err != nil {
		h.T.Fatal(err)
	}
	return x, secret
}

// closed returns why ports were closed, in order.
func (h *harbour) closed() (reasons []string) {
	h.T.Helper()
	for _, e := range h.Events(0) {
		if e.Type == space.EventPortClosed {
			d, err := event.Decode[space.PortClosed](e)
			if err != nil {
				h.T.Fatal(err)
			}
			reasons = append(reasons, d.Reason)
		}
	}
	return reasons
}

func (h *harbour) wantClosed(want ...string) {
	h.T.Helper()
	if got := strings.Join(h.closed(), " "); got != strings.Join(want, " ") {
		h.T.Errorf("ports were closed for %q, want %q", got, want)
	}
}

func wantCode(t *testing.T, err error, want string) {
	t.Helper()
	if got := fault.CodeOf(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// Each limit of an address at its edge, and one beyond.
func TestLimitsOfAnAddress(t *testing.T) {
	h := open(t)
	for _, c := range []struct {
		port int
		ttl  time.Duration
		code string
	}{
		{1, ports.MinTTL, ""}, {65535, ports.MaxTTL, ""}, {8080, 0, ""},
		{8080, ports.MinTTL - 1, "invalid_ttl"}, {8080, ports.MaxTTL + 1, "invalid_ttl"}, {8080, -time.Hour, "invalid_ttl"},
		{0, time.Hour, "invalid_port"}, {65536, time.Hour, "invalid_port"}, {-1, time.Hour, "invalid_port"},
	} {
		before := h.Clock.Now()
		x, _, err := h.ports.Preview(h.Context(), h.Origin, h.address(c.port, c.ttl))
		if fault.CodeOf(err) != c.code || (err == nil) != (c.code == "") {
			t.Errorf("port %d for %s: %v, want %q", c.port, c.ttl, err, c.code)
		}
		if ttl := max(c.ttl, 0); err == nil {
			if ttl == 0 {
				ttl = ports.DefaultTTL
			}
			if x.ExpiresAt.Before(before.Add(ttl)) || x.ExpiresAt.After(h.Clock.Now().Add(ttl)) {
				t.Errorf("port %d for %s ends at %s", c.port, c.ttl, x.ExpiresAt)
			}
		}
	}
}

// A space has at most MaxExposures open ports, however many callers ask at the same time; one that is closed makes room.
func TestAsManyPortsAsMayBeOpen(t *testing.T) {
	h := open(t)
	var all sync.WaitGroup
	opened := make(chan error, 2*ports.MaxExposures)
	for n := range 2 * ports.MaxExposures {
		all.Go(func() {
			_, _, err := h.ports.Preview(h.Context(), h.Origin, h.address(1000+n, time.Hour))
			opened <- err
		})
	}
	all.Wait()
	close(opened)
	good := 0
	for err := range opened {
		if err == nil {
			good++
		} else {
			wantCode(t, err, "too_many_ports")
		}
	}
	list, err := h.ports.List(h.Context(), testkit.WS, h.space)
	if err != nil || good > ports.MaxExposures || len(list) != good {
		t.Fatalf("%d opened, %d listed, want at most %d (%v)", good, len(list), ports.MaxExposures, err)
	}
	for n := good; n < ports.MaxExposures; n++ { // those that were refused for one that was about to be refused itself
		h.preview(5000 + n)
	}
	_, _, err = h.ports.Preview(h.Context(), h.Origin, h.address(9000, time.Hour))
	wantCode(t, err, "too_many_ports")
	if n, err := h.ports.Close(h.Context(), h.Origin, testkit.WS, h.space, list[0].Port.Port); n != 1 || err != nil {
		t.Fatalf("%d ports were closed (%v)", n, err)
	}
	for _, ws := range []id.Workspace{testkit.WS, "ws_other"} {
		n, err := h.ports.Close(h.Context(), h.Origin, ws, h.space, 7)
		if want := map[bool]string{false: "space_not_found"}[ws == testkit.WS]; n != 0 || fault.CodeOf(err) != want {
			t.Errorf("closing what is not open in %s: %d, %v", ws, n, err)
		}
	}
	h.preview(9000)
	h.wantClosed(space.PortRequested)
}

// An address ends with its time, to the nanosecond, and a port without one after Unused without a request.
func TestAPortEndsWithItsTime(t *testing.T) {
	h := open(t)
	x, secret := h.preview(8080)
	for range 2 {
		if got, err := h.ports.Redeem(h.Context(), secret); err != nil || got != x {
			t.Fatal(got, err)
		}
	}
	if err := h.ports.Step(h.Context(), x.ExpiresAt.Add(-1)); err != nil {
		t.Fatal(err)
	}
	h.wantClosed()
	if err := h.ports.Step(h.Context(), x.ExpiresAt); err != nil {
		t.Fatal(err)
	}
	h.wantClosed(space.PortExpired)
	_, err := h.ports.Redeem(h.Context(), secret)
	wantCode(t, err, ports.ErrGone.Code)
	h.Clock.Move(time.Hour)
	_, err = h.ports.Redeem(h.Context(), secret)
	wantCode(t, err, ports.ErrExpired.Code)

	late, second := h.preview(8081)
	h.Clock.Move(time.Hour)
	_, err = h.ports.Redeem(h.Context(), second) // before the next step
	wantCode(t, err, ports.ErrExpired.Code)
	if _, err := late.Dial(h.Context()); !errors.Is(err, space.ErrPortClosed) {
		t.Errorf("a port whose time is over: %v", err)
	}

	r, err := h.ports.Reach(h.Context(), h.Origin, testkit.WS, h.space, 8082)
	if err != nil {
		t.Fatal(err)
	}
	now := h.Clock.Now()
	if again, err := h.ports.Reach(h.Context(), h.Origin, testkit.WS, h.space, 8082); err != nil || again != r {
		t.Errorf("a second request opened the port anew: %v", err)
	}
	if err := h.ports.Step(h.Context(), now.Add(ports.Unused-time.Second)); err != nil {
		t.Fatal(err)
	}
	h.wantClosed(space.PortExpired, space.PortExpired)
	if err := h.ports.Step(h.Context(), h.Clock.Now().Add(ports.Unused)); err != nil {
		t.Fatal(err)
	}
	h.wantClosed(space.PortExpired, space.PortExpired, space.PortExpired)
}

// Any changed byte of an address is refused, and an address of requests has no secret that anybody could make.
func TestAnAddressIsSigned(t *testing.T) {
	h := open(t)
	_, secret := h.preview(8080)
	for i := range secret {
		other := byte('A')
		if secret[i] == other {
			other = 'B'
		}
		changed := secret[:i] + string(other) + secret[i+1:]
		if x, err := h.ports.Redeem(h.Context(), changed); err == nil {
			t.Errorf("%q was taken for %q of port %d", changed, secret, x.Port)
		}
	}
	for _, bad := range []string{"", ".", "..", "...", secret + ".x", secret + "A", strings.Repeat("a", 201), secret[:len(secret)-1]} {
		if _, err := h.ports.Redeem(h.Context(), bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A repeat of a request with the same key gets the same address; the key for another request is refused.
func TestAnAddressIsMadeOnce(t *testing.T) {
	h := open(t)
	a := h.address(8080, time.Hour)
	a.Key = "once"
	x, secret, err := h.ports.Preview(h.Context(), h.Origin, a)
	if err != nil {
		t.Fatal(err)
	}
	again, same, err := h.ports.Preview(h.Context(), h.Origin, a)
	if err != nil || again != x || same != secret {
		t.Errorf("a repeat got %q, want %q (%v)", same, secret, err)
	}
	a.Port = 8081
	if _, _, err = h.ports.Preview(h.Context(), h.Origin, a); !errors.Is(err, journal.ErrKeyConflict) {
		t.Errorf("the key for another port: %v", err)
	}
}

// Requests with the same key that come at the same time get the same address, and the port is opened once.
func TestRequestsWithOneKeyAtOnceGetOneAddress(t *testing.T) {
	h := open(t)
	a := h.address(8080, time.Hour)
	a.Key = "once"
	const requests = 16
	secrets := make([]string, requests)
	var all sync.WaitGroup
	for n := range requests {
		all.Go(func() {
			_, secret, err := h.ports.Preview(h.Context(), h.Origin, a)
			if err != nil {
				t.Error(err)
			}
			secrets[n] = secret
		})
	}
	all.Wait()
	for _, secret := range secrets {
		if secret != secrets[0] {
			t.Fatalf("got the addresses %q and %q, want one", secret, secrets[0])
		}
	}
	opened := 0
	for _, e := range h.Events(0) {
		if e.Type == space.EventPortOpened {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("the port was opened %d times, want once", opened)
	}
	a.Key = "twice" // another key has an address of its own
	if _, secret, err := h.ports.Preview(h.Context(), h.Origin, a); err != nil || secret == secrets[0] {
		t.Errorf("another key got %q (%v)", secret, err)
	}
}

// An address ends with the key by which it was made, and with no other key of the same person.
func TestAnAddressEndsWithItsKey(t *testing.T) {
	h := open(t)
	addresses := map[id.Key]string{}
	var keys []id.Key
	for _, name := range []string{"one", "two"} {
		_, key, err := h.Identity.IssueKey(h.Context(), h.Origin, testkit.WS, h.Owner, name)
		if err != nil {
			t.Fatal(err)
		}
		a := h.address(8080, time.Hour)
		a.By.Key = key.ID
		_, secret, err := h.ports.Preview(h.Context(), h.Origin, a)
		if err != nil {
			t.Fatal(err)
		}
		keys, addresses[key.ID] = append(keys, key.ID), secret
	}
	if err := h.Identity.RevokeKey(h.Context(), h.Origin, testkit.WS, keys[0], "a test", false); err != nil {
		t.Fatal(err)
	}
	_, err := h.ports.Redeem(h.Context(), addresses[keys[0]])
	wantCode(t, err, ports.ErrGone.Code)
	h.wantClosed(space.PortNotPermitted)
	if _, err := h.ports.Redeem(h.Context(), addresses[keys[1]]); err != nil {
		t.Errorf("the address of the other key: %v", err)
	}
	if err := h.Identity.RevokeKey(h.Context(), h.Origin, testkit.WS, keys[1], "a test", true); err != nil {
		t.Fatal(err)
	}
	if err := h.ports.Step(h.Context(), h.Clock.Now()); err != nil { // without a request
		t.Fatal(err)
	}
	h.wantClosed(space.PortNotPermitted, space.PortNotPermitted)

	a := h.address(8081, time.Hour)
	a.By.Key = id.Key("key_01ARZ3NDEKTSV4RRFFQ69G5FAV") // there is none
	_, _, err = h.ports.Preview(h.Context(), h.Origin, a)
	wantCode(t, err, space.ErrPortClosed.Code)
	a.By = ports.Credential{Session: id.Session("ses_01ARZ3NDEKTSV4RRFFQ69G5FAV")}
	_, _, err = h.ports.Preview(h.Context(), h.Origin, a)
	wantCode(t, err, space.ErrPortClosed.Code)
}

// The end of an authority or of a space closes the ports that were opened with it.
func TestAPortEndsWithWhatItBelongsTo(t *testing.T) {
	ways := []struct {
		name, code, reason string
		end                func(h *harbour, granted id.Token) error
	}{
		{"a revoked token", ports.ErrGone.Code, space.PortNotPermitted, func(h *harbour, granted id.Token) error {
			_, err := h.Identity.Revoke(h.Context(), h.Origin, testkit.WS, granted, "a test")
			return err
		}},
		{"the kill switch", "", space.PortKillSwitch, func(h *harbour, _ id.Token) error {
			_, err := h.Gate.KillSwitch.Throw(h.Context(), h.Origin, testkit.WS, "a test")
			return err
		}},
		{"the end of the space", ports.ErrGone.Code, space.PortSpaceEnded, func(h *harbour, _ id.Token) error {
			_, err := h.Spaces.Ending.Destroy(h.Context(), h.Origin, testkit.WS, h.space)
			return err
		}},
		{"the end of the daemon", ports.ErrGone.Code, space.PortDaemon, func(h *harbour, _ id.Token) error {
			h.ports.Stop(h.Context())
			return nil
		}},
	}
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			made, err := h.Identity.Grant(h.Context(), h.Origin, testkit.WS, token.Grant{IssuedTo: h.Owner, Scopes: token.All()})
			if err != nil {
				t.Fatal(err)
			}
			by := event.Origin{Principal: h.Owner, Token: made.ID}
			x, secret, err := h.ports.Preview(h.Context(), by, h.address(8080, time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.ports.Redeem(h.Context(), secret); err != nil {
				t.Fatal(err)
			}
			if err := c.end(h, made.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := h.ports.Redeem(h.Context(), secret); err == nil {
				t.Error("the address holds")
			}
			if err := h.ports.Step(h.Context(), h.Clock.Now()); err != nil {
				t.Fatal(err)
			}
			_, err = h.ports.Redeem(h.Context(), secret)
			if c.code != "" {
				wantCode(t, err, c.code)
			} else if err == nil {
				t.Error("the address holds after a step")
			}
			if _, err := x.Dial(h.Context()); !errors.Is(err, space.ErrPortClosed) {
				t.Errorf("a connection: %v, want %v", err, space.ErrPortClosed)
			}
			h.wantClosed(c.reason)
		})
	}
}

// A space that stands still keeps its open ports, and lets nobody through.
func TestAPausedSpaceLetsNobodyThrough(t *testing.T) {
	h := open(t)
	_, secret := h.preview(8080)
	if _, err := h.Spaces.Pauses.Pause(h.Context(), h.Origin, testkit.WS, h.space, spaces.Pause{}); err != nil {
		t.Fatal(err)
	}
	_, err := h.ports.Redeem(h.Context(), secret)
	wantCode(t, err, space.ErrPaused.Code)
	if _, err := h.Spaces.Pauses.Resume(h.Context(), h.Origin, testkit.WS, h.space, 0); err != nil {
		t.Fatal(err)
	}
	x, err := h.ports.Redeem(h.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Dial(h.Context()); !errors.Is(err, space.ErrPortSilent) {
		t.Errorf("nothing listens: %v, want %v", err, space.ErrPortSilent)
	}
	h.wantClosed()
}
