package wire

import (
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/principal"
)

// Rates are how many requests a principal may make in a minute, by class. All of them may come at once.
type Rates struct {
	Spaces   int // spaces made
	Runs     int // runs made
	Files    int // files read and written
	Claims   int // renewing, giving back and ending claims: a caller with many requests does not lose the runs that they work on
	General  int // everything else
	Failures int // unauthenticated attempts of one address
	Streams  int // event streams of one principal open at once; not per minute
	Owner    int // spaces, runs and files of an owner, each, where that is more than the number above
}

// DefaultRates are the rates of a daemon without configured ones.
func DefaultRates() Rates {
	return Rates{Spaces: 10, Runs: 60, Files: 300, Claims: 1000, General: 1000, Failures: 60, Streams: 32, Owner: 1000}
}

// MaxRate is the most of anything that an operator may allow in a minute.
const MaxRate = 1_000_000

// ParseRates returns the DefaultRates with some of them set by rules like general=5000: a field of Rates in small letters, = and a number
// from 1 to MaxRate. Anything else is a fault with code rate_invalid.
func ParseRates(rules []string) (Rates, error) {
	r := DefaultRates()
	fields := map[string]*int{
		"spaces": &r.Spaces, "runs": &r.Runs, "files": &r.Files, "claims": &r.Claims, "general": &r.General, "failures": &r.Failures,
		"streams": &r.Streams,
		"owner":   &r.Owner,
	}
	for _, rule := range rules {
		class, text, _ := strings.Cut(rule, "=")
		n, err := strconv.Atoi(text)
		if fields[class] == nil || err != nil || n < 1 || n > MaxRate {
			return Rates{}, fault.New(fault.Invalid, "rate_invalid",
				"%.100q is not a rate: write one of spaces, runs, files, claims, general, failures, streams and owner, =, and a number from 1 "+
					"to %d, as in general=5000", rule, MaxRate)
		}
		*fields[class] = n
	}
	return r, nil
}

// RateClass says which of the Rates an operation counts against.
type RateClass string

// The rate classes.
const (
	RateGeneral  RateClass = "general"
	RateSpaces   RateClass = "spaces"
	RateRuns     RateClass = "runs"
	RateFiles    RateClass = "files"
	RateClaims   RateClass = "claims"
	rateFailures RateClass = "failures"
)

// of returns the requests that a caller may make in a minute. An owner's token serves somebody else, so it has no more than others.
func (r Rates) of(class RateClass, c principal.Caller) int {
	if c.Role == principal.Overlord && c.Token == "" && (class == RateSpaces || class == RateRuns || class == RateFiles) {
		return max(r.plain(class), r.Owner)
	}
	return r.plain(class)
}

func (r Rates) plain(class RateClass) int {
	switch class {
	case RateSpaces:
		return r.Spaces
	case RateRuns:
		return r.Runs
	case RateFiles:
		return r.Files
	case RateClaims:
		return r.Claims
	case rateFailures:
		return r.Failures
	}
	return r.General
}

// maxBuckets bounds the memory of a limiter. Beyond it those that are full again are forgotten, which changes nothing for whom they
// counted; where none is, newcomers share one.
const maxBuckets = 10_000

type bucketKey struct {
	who   string
	class RateClass
}

// limiter counts requests in memory; a restart of the daemon forgives.
type limiter struct {
	rates Rates
	clock event.Clock

	mu      sync.Mutex
	buckets map[bucketKey]*rate.Limiter
	streams map[string]int
	waiting map[string]int
}

func newLimiter(rates Rates, clock event.Clock) *limiter {
	return &limiter{rates: rates, clock: clock, buckets: map[bucketKey]*rate.Limiter{}, streams: map[string]int{}, waiting: map[string]int{}}
}

// allow counts one request, tells the caller where they stand, and refuses it when the minute is used up.
func (l *limiter) allow(h http.Header, who string, class RateClass, limit int) error {
	now := l.clock.Now()
	l.mu.Lock()
	b := l.bucket(bucketKey{who, class}, limit, now)
	ok := b.AllowN(now, 1)
	left := b.TokensAt(now)
	l.mu.Unlock()

	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, int(left))))
	h.Set("X-RateLimit-Reset", strconv.Itoa(int(math.Ceil((float64(limit)-left)*60/float64(limit)))))
	if ok {
		return nil
	}
	after := time.Duration((1 - left) * float64(time.Minute) / float64(limit))
	return limited{fault.New(fault.Exhausted, "rate_limited", "%d requests a minute (%s) are used up; the next one is free in %s",
		limit, class, seconds(after)).With(raise(class)), after}
}

// raise says how an operator allows more.
func raise(class RateClass) string {
	return "wait, or have the operator allow more with: agentbox up --rate " + string(class) + "=N"
}

// seconds writes a duration in whole seconds, rounded up for waiting clients.
func seconds(d time.Duration) string {
	if n := int(math.Ceil(d.Seconds())); n != 1 {
		return strconv.Itoa(n) + " seconds"
	}
	return "1 second"
}

func (l *limiter) bucket(key bucketKey, limit int, now time.Time) *rate.Limiter {
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= maxBuckets {
		for k, b := range l.buckets {
			if b.TokensAt(now) >= float64(b.Burst()) {
				delete(l.buckets, k)
			}
		}
	}
	if overflow := (bucketKey{class: key.class}); len(l.buckets) >= maxBuckets && key != overflow {
		return l.bucket(overflow, limit, now)
	}
	b := rate.NewLimiter(rate.Limit(float64(limit)/60), limit)
	l.buckets[key] = b
	return b
}

// open counts an event stream of a caller until it is released.
func (l *limiter) open(who string) (release func(), err error) {
	if release, ok := l.hold(l.streams, who, l.rates.Streams); ok {
		return release, nil
	}
	return nil, fault.New(fault.Exhausted, "too_many_streams", "%d event streams are open; close one first", l.rates.Streams).
		With("or have the operator allow more with: agentbox up --rate streams=N")
}

// mostWaiting is how many requests of one principal wait at the same time for something to happen. Each holds a connection, and looks now
// and then.
const mostWaiting = 128

// Waits counts a request of a caller that waits until it is released.
func (s *Server) Waits(c Call) (release func(), err error) {
	if release, ok := s.limiter.hold(s.limiter.waiting, string(c.Caller.Principal), mostWaiting); ok {
		return release, nil
	}
	return nil, fault.New(fault.Exhausted, "too_many_waiting", "%d requests wait already; ask again when one has ended", mostWaiting)
}

// hold counts one more thing that a caller has at the same time. It returns false if the caller already has the most.
func (l *limiter) hold(held map[string]int, who string, most int) (release func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held[who] >= most {
		return nil, false
	}
	held[who]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if held[who]--; held[who] == 0 {
			delete(held, who)
		}
	}, true
}

// address is who an unauthenticated request counts against: the address, of IPv6 the network of 64 bits.
func address(remote string) string {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return "unknown"
	}
	addr := ap.Addr().Unmap().WithZone("")
	if addr.Is6() {
		return netip.PrefixFrom(addr, 64).Masked().String()
	}
	return addr.String()
}
