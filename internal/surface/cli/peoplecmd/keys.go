package peoplecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func keyRevoke(i *cmdline.Invocation) *cobra.Command {
	var reason string
	var last bool
	c := &cobra.Command{
		Use: "revoke KEY", Short: "Revoke an API key at once", Args: cobra.ExactArgs(1),
		Long: "The last key of an owner is refused without --last. After it is gone, the next start of the daemon makes a new key for the " +
			"local owner and writes it to\n" +
			"owner.key in the data directory. To exchange a key without a gap use: agentbox key rotate.",
	}
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.Flags().BoolVar(&last, "last", false, "revoke it even where it is the last key of an owner")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return cmdline.Call(i, cmd, func(api *client.Client) (map[string]string, error) {
			return map[string]string{"key_id": args[0], "status": "revoked"}, api.RevokeKey(cmd.Context(), id.Key(args[0]), reason, last)
		}, func(p *term.Printer, _ map[string]string) {
			p.Line("%s %s opens nothing any more", p.Paint(term.Green, "✓"), fmt.Sprint(args[0]))
		})
	}
	return c
}

// rotated is the JSON of the result of a key rotation.
type rotated struct {
	Key     id.Key `json:"key_id"`
	Secret  string `json:"key,omitempty"` // where it was not written to a file
	File    string `json:"file,omitempty"`
	Revoked id.Key `json:"revoked_key_id"`
}

func keyRotate(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "rotate", Short: "Exchange the API key that you use for a new one", Args: cobra.NoArgs,
		Long: "Rotate makes a new key, puts it where the old one lies, and then revokes the old one. The key of the local owner lies in " +
			"owner.key, another one in the file of\n" +
			"--key-file. A key that comes from AGENTBOX_KEY lies in no file: the new one is shown, once.",
		Example: "  agentbox key rotate\n  agentbox key rotate --key-file ./ci.key",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.Call(i, cmd, func(api *client.Client) (rotated, error) { return rotate(cmd.Context(), i, api) }, func(p *term.Printer,
				r rotated) {
				p.Fields("new key", string(r.Key), "file", term.OneLine(r.File, 0), "key", r.Secret, "for E2B",
					client.KeyForE2B(r.Secret), "revoked", string(r.Revoked))
				if r.Secret != "" {
					p.Line("%s", p.Paint(term.Faint, "It is shown here and nowhere else."))
				}
			})
		},
	}
}

// keyE2B prints the key in use for the packages of E2B.
func keyE2B(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "e2b", Short: "Print the API key that you use in the form of the E2B packages", Args: cobra.NoArgs,
		Long:    "It is the same key: e2b_ and its bytes in hexadecimal digits. Every package of E2B accepts this form.",
		Example: "  export E2B_API_KEY=$(agentbox key e2b)",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmdline.Call(i, cmd, func(api *client.Client) (map[string]string, error) {
				return map[string]string{"key": client.KeyForE2B(api.Key())}, nil
			}, func(p *term.Printer, key map[string]string) { p.Line("%s", key["key"]) })
		},
	}
}

// rotate exchanges the key that api sends.
func rotate(ctx context.Context, i *cmdline.Invocation, api *client.Client) (rotated, error) {
	me, err := api.Session(ctx)
	if err != nil {
		return rotated{}, err
	}
	if me.Key == "" {
		return rotated{}, cmdline.Usage("you are not known by an API key, but by a session or a token").With(
			"name the key: agentbox key rotate --key-file FILE")
	}
	name, err := client.NameOfKey(ctx, api, me)
	if err != nil {
		return rotated{}, err
	}
	made, err := api.IssueKey(ctx, "", name)
	if err != nil {
		return rotated{}, err
	}
	done := rotated{Key: made.ID, Revoked: me.Key}
	if i.KeyFrom == "AGENTBOX_KEY" {
		done.Secret = made.Secret
	} else if err := exchangeFile(i.KeyFrom, made.Secret); err != nil {
		return rotated{}, errors.Join(fault.Wrap(err, fault.Unavailable, "key_not_kept",
			"the new key cannot be written to %s; the old one stays in force", term.OneLine(i.KeyFrom, 200)),
			api.RevokeKey(ctx, made.ID, "it could not be kept", false))
	} else {
		done.File = i.KeyFrom
	}
	if err := api.With(made.Secret).RevokeKey(ctx, me.Key, "rotated", false); err != nil {
		return rotated{}, fault.Wrap(err, fault.KindOf(err), fault.CodeOf(err),
			"the new key %s is in force, but the old one could not be revoked", made.ID).
			With("revoke it with: agentbox key revoke " + string(me.Key))
	}
	return done, nil
}

// exchangeFile replaces a file by one that only its owner reads, in one step.
func exchangeFile(path, secret string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*") // which is made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
