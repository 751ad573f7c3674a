package hostcmd

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

func serverLogin(i *cmdline.Invocation) *cobra.Command {
	var in string
	var port int
	c := &cobra.Command{
		Use: "login SERVER --space SPACE", Short: "Log in to an MCP server with a browser", Args: cobra.ExactArgs(1),
		Long: "Login writes an address. Open it in a browser of this machine, and log in there. The browser comes back to this command,\n" +
			"and the daemon gets the tokens. It seals them in its data directory and renews them. They are in no event and no log.\n" +
			"The policy of the space has to permit the hosts of the server and of the issuer of its tokens.",
		Example: "  agentbox mcp add notes --url https://mcp.example.org/mcp --login\n  agentbox mcp login notes --space lab",
	}
	c.Flags().StringVar(&in, "space", "", "the space from which the server is reached")
	c.Flags().IntVar(&port, "port", 0, "the port of this machine to which the browser comes back (default: a free one)")
	_ = c.RegisterFlagCompletionFunc("space", i.CompleteSpaces)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if in == "" {
			return cmdline.Usage("name the space with --space")
		}
		ctx := cmd.Context()
		api, err := i.Connect(ctx)
		if err != nil {
			return err
		}
		at, err := i.Named(ctx, api, in)
		if err != nil {
			return err
		}
		waits, err := awaitBrowser(port)
		if err != nil {
			return err
		}
		defer waits.close()
		v, err := api.BeginServerLogin(ctx, args[0], at, waits.redirect)
		if err != nil {
			return err
		}
		p := i.Printer(i.Err)
		p.Line("open this address in a browser of this machine, and log in within %s:\n%s", term.Duration(v.Until.Sub(i.Clock.Now())),
			term.Plain(v.Address))
		back, err := waits.answer(ctx, v.Address)
		if err != nil {
			return err
		}
		s, err := api.FinishServerLogin(ctx, args[0], back)
		waits.tell(err)
		if err != nil {
			return err
		}
		return i.Show(s, func(p *term.Printer) {
			p.Line("%s: logged in; now see what it offers: agentbox mcp look %s --space %s", term.Plain(s.Name), term.Plain(s.Name),
				term.OneLine(in, 60))
		})
	}
	return c
}

func serverLogout(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "logout SERVER", Short: "Destroy the tokens of a login at an MCP server", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := api.EndServerLogin(cmd.Context(), args[0]); err != nil {
				return err
			}
			return i.Show(map[string]string{"name": args[0]}, func(p *term.Printer) { p.Line("%s: logged out", term.Plain(args[0])) })
		},
	}
}

// browser is where the browser of a person comes back to: a port of this machine.
type browser struct {
	redirect string
	server   *http.Server
	served   chan struct{} // closed when the server has ended
	over     chan struct{} // closed when nobody waits any more
	came     chan visitor
	page     chan string // of the visitor with the answer
}

// visitor is a request for the page.
type visitor struct {
	query url.Values
	page  chan string // takes what the page says, once
}

func awaitBrowser(port int) (*browser, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "port_unusable", "no browser can come back to the port %d of this machine", port)
	}
	b := &browser{redirect: "http://" + l.Addr().String() + "/callback", served: make(chan struct{}), over: make(chan struct{}),
		came: make(chan visitor)}
	b.server = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(b.served)
		_ = b.server.Serve(l)
	}()
	return b, nil
}

// ServeHTTP implements http.Handler.
func (b *browser) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet || r.URL.Path != "/callback" {
		http.NotFound(w, r)
		return
	}
	v := visitor{r.URL.Query(), make(chan string, 1)}
	select {
	case b.came <- v:
	case <-b.over:
	case <-r.Context().Done():
	}
	select {
	case said := <-v.page:
		_, _ = w.Write([]byte(said + "\n"))
	case <-b.over:
		select {
		case said := <-v.page:
			_, _ = w.Write([]byte(said + "\n"))
		default:
		}
	case <-r.Context().Done():
	}
}

// errorWord is an error code of OAuth.
var errorWord = regexp.MustCompile(`^[a-z_]{1,40}$`)

// answer waits for the browser that comes from an address. Requests of others, which do not know its state, change nothing.
func (b *browser) answer(ctx context.Context, address string) (mcp.Returned, error) {
	at, err := url.Parse(address)
	if err != nil {
		return mcp.Returned{}, err
	}
	state := at.Query().Get("state")
	for {
		var v visitor
		select {
		case v = <-b.came:
		case <-ctx.Done():
			return mcp.Returned{}, ctx.Err()
		}
		if state == "" || v.query.Get("state") != state {
			v.page <- "This page belongs to no login that waits here."
			continue
		}
		b.page = v.page
		if said := v.query.Get("error"); said != "" {
			err := fault.New(fault.Denied, "mcp_login_refused", "the issuer refuses the login")
			if errorWord.MatchString(said) {
				err = fault.New(fault.Denied, "mcp_login_refused", "the issuer refuses the login: %s", said)
			}
			b.tell(err)
			return mcp.Returned{}, err
		}
		return mcp.Returned{Code: v.query.Get("code"), State: state, Issuer: v.query.Get("iss")}, nil
	}
}

// tell says on the page what became of the login.
func (b *browser) tell(err error) {
	if err != nil {
		b.page <- "The login has failed. Your terminal says why."
		return
	}
	b.page <- "You are logged in. Close this page."
}

// close waits until the page is sent.
func (b *browser) close() {
	close(b.over)
	_ = b.server.Shutdown(context.Background()) // its requests end, because nobody waits for them
	<-b.served
}
