package replaycmd

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// RunExport writes the transcript of a run.
func RunExport(i *cmdline.Invocation) *cobra.Command {
	var (
		file, format, redact string
		force, files         bool
	)
	c := &cobra.Command{
		Use: "export RUN", Short: "Write a run's transcript: what was asked, decided and done", Args: cobra.ExactArgs(1),
		Long: "Export writes a transcript as JSON Lines, which `agentbox runs replay` replays here or elsewhere, or as Markdown to be read.\n" +
			"Redacted parts leave their hashes, so that a replay can still be compared; of environment variables only the names stay.\n" +
			"With --files it carries the first files of the run without redaction, so that the run can be replayed where `agentbox runs import` " +
			"imports it.",
		Example: "  agentbox runs export run_... -o run.jsonl --files\n  agentbox runs export run_... --format md --redact env,output",
	}
	f := c.Flags()
	f.StringVarP(&file, "output", "o", "-", "file to write; - is standard output")
	f.BoolVarP(&force, "force", "f", false, "replace the file if it exists")
	f.StringVar(&format, "format", "jsonl", "jsonl or md")
	f.StringVar(&redact, "redact", run.RedactEnv, "what is taken out: "+strings.Join(run.Redactions(), ", ")+", separated by commas, or none")
	f.BoolVar(&files, "files", false, "carry the files that the run began with, at most 16 MiB, less those that policy lets nobody read")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if format != "jsonl" && format != "md" {
			return cmdline.Usage("there is no format %q; it is jsonl or md", term.OneLine(format, 20))
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		var classes []string
		if redact != "none" {
			classes = strings.Split(redact, ",")
		}
		raw, told, err := fetchTranscript(cmd.Context(), api, id.Run(args[0]), classes, files)
		if err != nil {
			return err
		}
		if format == "md" {
			raw = []byte(markdown(told))
		}
		if err := cmdline.Emit(i, file, force, func(w io.Writer) error {
			_, err := w.Write(raw)
			return err
		}); err != nil || file == "-" {
			return err
		}
		return i.Show(exported{Run: told.Header.Run.ID, File: file, Bytes: len(raw), Redacted: told.Header.Redacted, Files: len(told.Files) > 0,
			Omitted: told.Omitted}, func(p *term.Printer) {
			p.Line("%s: %s, %s, redacted: %s", term.OneLine(file, 0), term.Bytesize(int64(len(raw))), term.Count(len(told.Asked), "operation"),
				cmdline.First(strings.Join(told.Header.Redacted, ", "), "nothing"))
			if told.Omitted > 0 {
				p.Line("%s %d files that you may not read, or that no archive holds, were left out", p.Paint(term.Yellow, "!"), told.Omitted)
			}
		})
	}
	return c
}

// exported is the summary of a written transcript, in JSON.
type exported struct {
	Run      id.Run   `json:"run_id"`
	File     string   `json:"file"`
	Bytes    int      `json:"size_bytes"`
	Redacted []string `json:"redacted"`
	Files    bool     `json:"carries_files"`
	Omitted  int      `json:"files_omitted,omitempty"`
}

// fetchTranscript reads a transcript from the daemon and makes sure that it is whole.
func fetchTranscript(ctx context.Context, api *client.Client, r id.Run, redact []string, files bool) ([]byte, run.Transcript, error) {
	body, err := api.Transcript(ctx, r, redact, files)
	if err != nil {
		return nil, run.Transcript{}, err
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, run.Transcript{}, fault.Wrap(err, fault.Unavailable, "transcript_cut", "the daemon broke the transcript off; try again")
	}
	told, err := run.ReadTranscript(bytes.NewReader(raw))
	return raw, told, err
}

// RunImport takes a transcript into the record.
func RunImport(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "import TRANSCRIPT.jsonl", Short: "Import a run that was executed elsewhere", Args: cobra.ExactArgs(1),
		Long: "Import makes a record of its own from a transcript: it is listed, shown, exported and replayed like a run that was executed " +
			"here, and is marked as\n" +
			"imported everywhere. Its events are held against their hashes, their chain and the proof that came with them; a file that was " +
			"changed is refused.\n" +
			"The key that signed the proof is shown: whether it is that of somebody you trust is for you to say. The same file again gives the " +
			"same record.",
		Example: "  agentbox runs import run.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return cmdline.Unreadable(err, args[0])
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return cmdline.Unreadable(err, args[0])
			}
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			made, err := api.ImportRun(cmd.Context(), f, info.Size())
			if err != nil {
				return err
			}
			return i.Show(made, func(p *term.Printer) {
				p.Line("%s", made.ID)
				runview.WriteImported(p, made)
			})
		},
	}
}
