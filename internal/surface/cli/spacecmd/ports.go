package spacecmd

import (
	"context"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func spacePorts(i *cmdline.Invocation) *cobra.Command {
	var closing string
	c := &cobra.Command{
		Use: "ports SPACE", Short: "List the ports of a space, or close one", Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteSpaces,
		Long: "Those on which a program in the space listens, and those that are open. A port is opened by its preview, or by a request with " +
			"a key.",
	}
	c.Flags().StringVar(&closing, "close", "", "the port to close: its connections end, and its addresses are not valid any more")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, s, err := reach(cmd.Context(), i, args[0])
		if err != nil {
			return err
		}
		if closing != "" {
			port, err := space.ReadPort(closing)
			if err != nil {
				return err
			}
			n, err := api.ClosePort(cmd.Context(), s, port)
			if err != nil {
				return err
			}
			return i.Show(map[string]int{"port": port, "closed": n}, func(p *term.Printer) {
				p.Line("The port %d is closed; it was open %d times.", port, n)
			})
		}
		ports, err := api.Ports(cmd.Context(), s)
		if err != nil {
			return err
		}
		return i.List("ports", ports, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(ports))
			for n, port := range ports {
				listens := term.Cell{Text: strings.Join(port.Addresses, " "), Colour: term.Green}
				if !port.Listening {
					listens = term.Cell{Text: "nothing listens", Colour: term.Faint}
				}
				rows[n] = []term.Cell{term.Text(strconv.Itoa(port.Port)), listens, term.Text(opened(port.Open))}
			}
			p.Table("No program listens.", []string{"port", "listens on", "open for"}, rows)
		})
	}
	return c
}

// opened says for whom a port is open.
func opened(all []client.OpenPort) string {
	var said []string
	for _, o := range all {
		text := "requests of " + string(o.Principal)
		if o.How != space.PortByRequests {
			text = "an address until " + o.ExpiresAt.Local().Format(time.DateTime)
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

func reach(ctx context.Context, i *cmdline.Invocation, name string) (*client.Client, id.Space, error) {
	api, err := i.Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	s, err := i.Named(ctx, api, name)
	return api, s, err
}

func spacePreview(i *cmdline.Invocation) *cobra.Command {
	var (
		ttl            string
		open, external bool
	)
	c := &cobra.Command{
		Use: "preview SPACE PORT", Short: "Make an address at which a browser reaches a port of a space", Args: cobra.ExactArgs(2),
		ValidArgsFunction: i.CompleteSpaces,
		Example:           "  agentbox space preview weather 8080 --open",
		Long: "Everybody who has the address reaches the program that listens on the port, until the address ends. Its pages load from their " +
			"own host\nalone, unless --external lets them load from others.",
	}
	c.Flags().StringVar(&ttl, "ttl", "", "how long the address holds, for example 2h (default 1h, at most 7 days)")
	c.Flags().BoolVar(&external, "external", false, "its pages may load scripts, images and data from other hosts")
	c.Flags().BoolVar(&open, "open", false, "open the address in a browser")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		port, err := space.ReadPort(args[1])
		if err != nil {
			return err
		}
		var d time.Duration
		if ttl != "" {
			if d, err = cmdline.ParseSpan(ttl); err != nil {
				return err
			}
		}
		api, s, err := reach(cmd.Context(), i, args[0])
		if err != nil {
			return err
		}
		v, err := api.PreviewPort(cmd.Context(), s, port, d, external)
		if err != nil {
			return err
		}
		if open {
			if err := browse(cmd.Context(), v.URL); err != nil {
				return fault.Wrap(err, fault.Unavailable, "no_browser", "no browser could be started; open %s yourself", v.URL)
			}
		}
		return i.Show(v, func(p *term.Printer) {
			p.Line("%s", v.URL)
			p.Line("until %s; below a path: %s", v.ExpiresAt.Local().Format(time.DateTime), v.PathURL)
		})
	}
	return c
}

// browse opens an address in the browser of the desktop.
func browse(ctx context.Context, address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", address).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", address).Run()
	}
	return exec.CommandContext(ctx, "xdg-open", address).Run()
}
