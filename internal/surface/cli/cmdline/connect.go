package cmdline

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/term"
)

// UnknownKey says where a key came from that the daemon refuses; the daemon cannot know.
func UnknownKey(i *Invocation, err error) error {
	if f, ok := AsFault(err); ok && f.Code == "unauthenticated" && i.KeyFrom != "" {
		return fault.New(f.Kind, f.Code, "the daemon does not know the key from %s", term.OneLine(i.KeyFrom, 200)).
			With("without AGENTBOX_KEY and --key-file the session of agentbox login is used, and where there is none, the local owner's key")
	}
	return err
}

// DataDir returns the data directory of the local daemon.
func (i *Invocation) DataDir() (string, error) {
	if i.Data != "" {
		return Absolute(i.Data)
	}
	if dir := i.Getenv("AGENTBOX_HOME"); dir != "" {
		return Absolute(dir)
	}
	home := i.Getenv("HOME")
	if home == "" {
		return "", Usage("the home directory is not known; name the data directory with --data")
	}
	return Absolute(home + "/.agentbox")
}

// Place returns the folders of the local daemon.
func (i *Invocation) Place() (p Place, err error) {
	if p.DataDir, err = i.DataDir(); err != nil {
		return p, err
	}
	p.Store = First(i.Store, i.Getenv("AGENTBOX_STORE"))
	if p.Shared = First(i.Shared, i.Getenv("AGENTBOX_SHARED")); p.Shared != "" {
		p.Shared, err = Absolute(p.Shared)
	}
	return p, err
}

// Connect returns a client of the daemon that was named, else of the local one.
func (i *Invocation) Connect(ctx context.Context) (*client.Client, error) {
	if err := i.emptyVariable(); err != nil {
		return nil, err
	}
	address, key := First(i.URL, i.Getenv("AGENTBOX_URL")), i.Getenv("AGENTBOX_KEY")
	i.KeyFrom = "AGENTBOX_KEY"
	if i.Key != "" {
		text, err := os.ReadFile(i.Key)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "key_file_unreadable", "the key file cannot be read")
		}
		if key, i.KeyFrom = strings.TrimSpace(string(text)), i.Key; key == "" { // a caller who names a key does not mean the owner's
			return nil, fault.New(fault.Invalid, "key_file_empty", "the key file %s is empty", term.OneLine(i.Key, 200)).
				With("write an API key into it, or leave --key-file out")
		}
	}
	named := address != ""
	if !named {
		var err error
		if address, err = i.Address(ctx); err != nil {
			return nil, err
		}
	}
	if key == "" {
		var err error
		if key, err = i.bearer(ctx, address); err != nil {
			return nil, err
		}
		i.KeyFrom = i.SessionFile()
	}
	if key == "" {
		dir, err := i.DataDir()
		if err != nil {
			return nil, err
		}
		if named {
			if err := localOnly(ctx, i, address, dir); err != nil {
				return nil, err
			}
		}
		if key, err = OwnerKey(dir); err != nil {
			return nil, err
		}
		i.KeyFrom = filepath.Join(dir, "owner.key")
	}
	return client.New(address, key), nil
}

// localOnly keeps the local owner's key from being sent to another daemon than the local one.
func localOnly(ctx context.Context, i *Invocation, address, dir string) error {
	found, err := i.Serving(ctx, dir)
	switch {
	case fault.CodeOf(err) == codeNotRunning: // the caller has named another daemon
		return noKey(address, "")
	case err != nil:
		return err
	}
	want, errA := url.Parse(address)
	have, errB := url.Parse(found.URL())
	if errA != nil || errB != nil || want.Host != have.Host {
		return noKey(address, "; the local owner's key goes to "+found.URL()+" only")
	}
	return nil
}

// noKey refuses to call a daemon without a key.
func noKey(address, why string) error {
	return fault.New(fault.Denied, "key_missing", "no key for %s%s", term.OneLine(address, 80), why).
		With("set AGENTBOX_KEY or name a file with --key-file")
}
