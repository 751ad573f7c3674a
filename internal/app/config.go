// Package app is the roof: configuration, the tables of drivers, wiring, the clock, start and stop.
package app

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/query"
	"agentbox/internal/service/redaction"
	"agentbox/internal/surface/httpapi/wire"
)

// Config holds the operator's settings of a daemon. Default fills it in; the zero Config is refused.
type Config struct {
	DataDir string // where everything is kept; made with mode 0700
	// address of the database that the log lies in, as in postgres://user@host/database; "" for a file in the data directory
	Store string
	// folder with what the daemons of a database share: this one works on it together with others; "" for a daemon that has it alone
	Shared string
	Listen string // host:port; loopback unless a key is demanded of everybody, which it always is; port 0 takes a free one
	// address where the other daemons of a database reach this one, as in https://a.example; "" for http and the listen address
	Advertise string
	RootFS    string   // read-only root of the spaces; "" finds the one that `make rootfs` made, else the host's own programs
	Sources   []string // folders of the host from which spaces may be filled; absolute
	// command that makes a worker of the nano tier by calling Worker: this program and an argument; without it there is no nano tier
	Worker   []string
	Light    space.Tier // a tier of the program that embeds this package, weaker than every other one; nil for none
	Shadow   bool       // record what policy would refuse, and let it pass
	Floating bool       // blueprints run also when a pin is missing or does not fit
	Engine   string     // who executes runs of operations that wait for an engine: EngineEmbedded or EngineExternal; "" for the first

	RuntimeRules string // file with the rules of where commands run; "" for those of this program

	EffectsPerHour int           // of one principal, counted over restarts; 0 means without limit
	ClaimTime      time.Duration // after which the run of an engine that is silent is another's; 0 means run.ClaimTime
	ApprovalTime   time.Duration // after which a question that nobody answered expires; 0 means policy.DefaultQuestionTime

	SigningKey string   // file of the key that signs checkpoints; "" for signing.key in the data directory
	Witnesses  []string // folders and http addresses to which checkpoints are brought about once a minute

	Traces string // address of the OTLP/HTTP collector for traces; "" leaves it to the variables OTEL_*, without which there are none

	Retention []string // how long the data of which events are kept, as redaction.ParseRetention reads it; none means for good

	MaxSpaces        int           // living spaces of one workspace
	MaxLimits        space.Limits  // the most that one space may ask for
	ContentQuota     int64         // bytes of content that the log of one workspace may name; 0 means without limit
	MaxWorkspace     int64         // bytes of a workspace's file that is sent to be imported
	KeepSnapshots    int           // of each space, by a sweep; 0 means as many as the store keeps
	KeepSnapshotsFor time.Duration // in whole seconds; 0 means however long

	Rates     wire.Rates // requests of one principal; the zero value means what RateRules say
	RateRules []string   // what differs from wire.DefaultRates, as wire.ParseRates reads it
}

// DefaultListen is where a daemon listens that was not told otherwise.
const DefaultListen = "127.0.0.1:7433"

// Default returns the configuration of a daemon with the given data directory.
func Default(dataDir string) Config {
	most := space.DefaultLimits()
	most.MemoryBytes, most.CPUMillis, most.Pids, most.DiskBytes = 8<<30, 8000, 2048, 32<<30
	most.FileBytes, most.OutputBytes, most.OpenFiles, most.TmpBytes = 8<<30, 64<<20, 16<<10, 4<<30
	return Config{DataDir: dataDir, Listen: DefaultListen, MaxSpaces: 200, MaxLimits: most, ContentQuota: content.DefaultQuota,
		MaxWorkspace: 256 << 20}
}

// rule says which snapshots a sweep keeps.
func (c Config) rule() content.Rule {
	return content.Rule{Snapshots: c.KeepSnapshots, Seconds: int64(c.KeepSnapshotsFor / time.Second)}
}

// check refuses a configuration that cannot be served safely.
func (c Config) check() error {
	if c.DataDir == "" || !filepath.IsAbs(c.DataDir) {
		return fmt.Errorf("the data directory must be an absolute path")
	}
	if c.Store != "" && !isDatabase(c.Store) {
		return fmt.Errorf("the store is the address of a database of PostgreSQL, as in postgres://user@host:5432/database")
	}
	if c.Shared != "" && (c.Store == "" || !filepath.IsAbs(c.Shared)) {
		return fmt.Errorf("the shared folder is an absolute path, for the daemons of a database; without --store everything lies in the data " +
			"directory")
	}
	if err := c.checkAdvertised(); err != nil {
		return err
	}
	if info, err := os.Stat(c.RootFS); c.RootFS != "" && c.RootFS != hostRoot && (err != nil || !info.IsDir()) {
		return fmt.Errorf("the root of the spaces, %s, is not a folder", c.RootFS)
	}
	if c.EffectsPerHour < 0 {
		return fmt.Errorf("the effects per hour are %d; name a number of at least 0, which means without limit", c.EffectsPerHour)
	}
	rules, err := redaction.ParseRetention(c.Retention)
	if err != nil {
		return err
	}
	if err := rules.Select(query.EventTypes()); err != nil {
		return err
	}
	if c.ContentQuota < 0 {
		return fmt.Errorf("the content quota is %d; name a number of bytes of at least 0, which means without limit", c.ContentQuota)
	}
	if c.KeepSnapshots < 0 || c.KeepSnapshotsFor < 0 || c.KeepSnapshotsFor%time.Second != 0 {
		return fmt.Errorf("snapshots are kept by a number and a time in whole seconds, of at least 0, which means without limit")
	}
	if c.ApprovalTime != 0 && (c.ApprovalTime < time.Second || c.ApprovalTime > policy.MaxQuestionTime) {
		return fmt.Errorf("the time for an approval is %s; name one from 1s to %s", c.ApprovalTime, policy.MaxQuestionTime)
	}
	if c.ClaimTime != 0 && (c.ClaimTime < run.MinClaimTime || c.ClaimTime > run.MaxClaimTime || c.ClaimTime%time.Millisecond != 0) {
		return fmt.Errorf("the time of a claim is %s; name one from %s to %s", c.ClaimTime, run.MinClaimTime, run.MaxClaimTime)
	}
	if _, err := place(c); err != nil {
		return err
	}
	if _, err := wire.ParseRates(c.RateRules); err != nil {
		return err
	}
	if c.SigningKey != "" && !filepath.IsAbs(c.SigningKey) {
		return fmt.Errorf("the signing key must be an absolute path")
	}
	if u, err := url.Parse(c.Traces); c.Traces != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return fmt.Errorf("the collector of traces is an address like http://127.0.0.1:4318")
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("the listen address is host:port: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listening on %s would send keys over the network in clear text; listen on 127.0.0.1 and put a TLS proxy in front",
			host)
	}
	return nil
}

// checkAdvertised refuses an address under which nobody should reach the daemon: forwarded requests carry the callers' keys.
func (c Config) checkAdvertised() error {
	if c.Advertise == "" {
		return nil
	}
	u, err := url.Parse(c.Advertise)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" ||
		u.User != nil {
		return fmt.Errorf("the advertised address is that of the daemon as the others reach it, as in https://a.example")
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("the advertised address %s would send keys over the network in clear text; put a TLS proxy in front and advertise that",
			c.Advertise)
	}
	if c.Shared == "" {
		return fmt.Errorf("an address is advertised to the other daemons of a database; without --shared there are none")
	}
	return nil
}
