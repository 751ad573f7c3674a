package spacecmd

import (
	"context"
	"crypto/sha256"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/step"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Artifacts are the commands about outputs of runs.
func Artifacts(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("artifact", "List, put and get outputs of runs", artifactList(i), artifactPut(i), artifactGet(i))
}

func artifactList(i *cmdline.Invocation) *cobra.Command {
	var r string
	var most int
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List artifacts, the newest first", Args: cobra.NoArgs}
	c.Flags().StringVar(&r, "run", "", "only of this run")
	c.Flags().IntVar(&most, "limit", 20, "how many at most, 1 to 100")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		page, err := api.Artifacts(cmd.Context(), id.Run(r), client.Page{Limit: most})
		if err != nil {
			return err
		}
		found := page.Artifacts
		return i.List("artifacts", found, page.Next, func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, a := range found {
				size := ""
				if a.Size != nil {
					size = strconv.FormatInt(*a.Size, 10)
				}
				rows[n] = []term.Cell{term.Text(string(a.ID)), term.Text(a.Kind), term.Text(cmdline.First(a.Path, a.Title)),
					term.Text(size), term.Text(string(a.Run)),
					{Text: term.Ago(i.Clock.Now(), a.CreatedAt),
						Colour: term.Faint}}
			}
			p.Table("There are no artifacts.", []string{"artifact", "kind", "title", "bytes", "run", "made"}, rows)
		})
	}
	return c
}

func artifactPut(i *cmdline.Invocation) *cobra.Command {
	var kind, title, media, token string
	c := &cobra.Command{
		Use: "put STEP FILE", Short: "Keep a file as an output of a step's run", Args: cobra.ExactArgs(2),
		Example: "  agentbox artifact put step_... report.pdf --kind report --token clm_...",
	}
	c.Flags().StringVar(&kind, "kind", "file", "what kind of output it is, a word")
	c.Flags().StringVar(&title, "title", "", "what it is called (default: the file's name)")
	c.Flags().StringVar(&media, "type", "", "its media type")
	c.Flags().StringVar(&token, "token", "", "the token of the run's claim")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		file, err := os.Open(args[1])
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "file_unreadable", "%s cannot be read", term.OneLine(args[1], 200))
		}
		defer file.Close()
		hash := sha256.New()
		size, err := io.Copy(hash, file)
		if err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "file_unreadable", "%s cannot be read", term.OneLine(args[1], 200))
		}
		made, err := api.PutArtifact(cmd.Context(), id.Step(args[0]), token, client.NewArtifact{
			Kind: kind, Title: cmdline.First(title, filepath.Base(args[1])), Media: media, Size: size, Digest: event.Digest(hash.Sum(nil)),
		}, file)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) { p.Line("%s holds %s, %s", made.ID, term.Count(size, "byte"), made.Digest) })
	}
	return c
}

func artifactGet(i *cmdline.Invocation) *cobra.Command {
	var (
		out, r string
		force  bool
	)
	c := &cobra.Command{
		Use: "get ARTIFACT", Short: "Write the content of an artifact to standard output, or to a file", Args: cobra.ExactArgs(1),
		Long: "Get checks the content against its hash. With --json it shows the artifact and no content. With --run, ARTIFACT may be the\n" +
			"path of a file that the run has kept.",
		Example: "  agentbox artifact get art_... -o report.md\n  agentbox artifact get out/report.md --run run_... > report.md",
	}
	c.Flags().StringVar(&r, "run", "", "the run that has kept the file whose path is named")
	c.Flags().StringVarP(&out, "out", "o", "", "file to write")
	c.Flags().BoolVarP(&force, "force", "f", false, "replace the file if it exists")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		a, err := artifactNamed(cmd.Context(), api, args[0], id.Run(r))
		if err != nil || i.JSON {
			return errOr(err, func() error { return i.Show(a, nil) })
		}
		content, err := api.ArtifactContent(cmd.Context(), a.ID)
		if err != nil {
			return err
		}
		defer content.Close()
		whole := &Checked{Content: content, Hash: sha256.New(), Want: a.Digest}
		if a.Stored != nil {
			whole.Want = a.Stored.Digest
		}
		if out != "" {
			_, err = cmdline.Save(out, whole, force)
		} else {
			_, err = io.Copy(i.Out, whole)
		}
		return err
	}
	return c
}

// artifactNamed returns an artifact by its id, or by its path in a run that has kept it.
func artifactNamed(ctx context.Context, api *client.Client, name string, r id.Run) (step.Artifact, error) {
	if isID := strings.HasPrefix(name, "art_"); isID || r == "" {
		a, err := api.Artifact(ctx, id.Artifact(name))
		if fault.KindOf(err) == fault.NotFound && !isID {
			return a, fault.New(fault.NotFound, fault.CodeOf(err), "no artifact has the id %q", term.OneLine(name, 200)).
				With("name the run of a kept file: agentbox artifact get PATH --run RUN\nsee: agentbox artifact list")
		}
		return a, err
	}
	kept, err := cmdline.All(func(cursor string) ([]step.Artifact, string, error) {
		page, err := api.Artifacts(ctx, r, client.Page{Cursor: cursor, Limit: 100})
		return page.Artifacts, page.Next, err
	})
	if err != nil {
		return step.Artifact{}, err
	}
	path := strings.TrimPrefix(name, "./")
	for _, a := range kept { // the newest first
		if a.Path != "" && a.Path == path {
			return a, nil
		}
	}
	return step.Artifact{}, fault.New(fault.NotFound, step.ErrArtifactNotFound.Code, "the run %s has kept no file with the path %q", r,
		term.OneLine(name, 200)).With("see what it has kept: agentbox artifact list --run " + string(r))
}

// Checked is the content of an artifact. Reading it ends with an error if its length or hash is not the artifact's.
type Checked struct {
	Content io.Reader
	Hash    hash.Hash
	Want    event.Digest
}

// Read reads on.
func (c *Checked) Read(b []byte) (int, error) {
	n, err := c.Content.Read(b)
	c.Hash.Write(b[:n])
	switch {
	case err == io.EOF && event.Digest(c.Hash.Sum(nil)) != c.Want:
		err = fault.Wrap(step.ErrOtherContent, fault.Internal, "content_corrupt", "what came is not the artifact's content")
	case err != nil && err != io.EOF:
		err = fault.Wrap(err, fault.Unavailable, "content_cut_off", "the content was cut off")
	}
	return n, err
}

func errOr(err error, do func() error) error {
	if err != nil {
		return err
	}
	return do()
}
