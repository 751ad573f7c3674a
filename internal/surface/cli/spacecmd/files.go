package spacecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Files are the commands about the files of a space.
func Files(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("files", "List, read, write and remove files of a space", fileList(i), fileCat(i), filePut(i), fileGet(i),
		fileRemove(i))
}

func fileList(i *cmdline.Invocation) *cobra.Command {
	var deep bool
	c := &cobra.Command{Use: "ls SPACE [FOLDER]", Aliases: []string{"list"}, Short: "List files", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: i.CompleteSpaces}
	c.Flags().BoolVarP(&deep, "recursive", "r", false, "also what is in the folders")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		found, err := api.Files(cmd.Context(), in, cmdline.First(append(args[1:], ".")...), deep)
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(found.Entries))
			for n, e := range found.Entries {
				size, name := term.Bytesize(e.Size), term.Cell{Text: term.OneLine(e.Path, 0), Colour: ""}
				switch e.Type {
				case "directory":
					size, name = "-", term.Cell{Text: name.Text + "/", Colour: term.Cyan}
				case "symlink":
					name.Text += " -> " + term.OneLine(e.Target, 0)
				}
				if e.Withheld {
					name = term.Cell{Text: name.Text + "  (withheld from code)", Colour: term.Yellow}
				}
				rows[n] = []term.Cell{{Text: e.Mode, Colour: term.Faint}, {Text: size, Colour: ""}, {Text: term.Ago(now, e.Modified),
					Colour: term.Faint}, name}
			}
			p.Table("The folder is empty.", []string{"mode", "size", "changed", "path"}, rows)
			if found.Truncated {
				p.Line("%s", p.Paint(term.Yellow, "There is more than one listing holds; list the folders one by one."))
			}
		})
	}
	return c
}

// withheldFlag adds the flag that asks for the withheld one of two files of one path.
func withheldFlag(c *cobra.Command, withheld *bool) *cobra.Command {
	c.Flags().BoolVar(withheld, "withheld", false, "the file that is withheld from code, where code has one of that name too")
	return c
}

// fileContent opens a file of a space.
func fileContent(ctx context.Context, api *client.Client, in id.Space, name string, withheld bool) (io.ReadCloser, error) {
	if withheld {
		return api.ReadWithheld(ctx, in, name)
	}
	return api.ReadFile(ctx, in, name)
}

func fileCat(i *cmdline.Invocation) *cobra.Command {
	var withheld bool
	return withheldFlag(&cobra.Command{
		Use: "cat SPACE PATH", Short: "Print a file", Args: cobra.ExactArgs(2), ValidArgsFunction: i.CompleteSpaces,
		Long: "Cat prints a file. On a terminal what a terminal would obey is made visible; into a pipe the bytes go as they are.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			in, err := i.Named(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			content, err := fileContent(cmd.Context(), api, in, args[1], withheld)
			if err != nil {
				return err
			}
			defer content.Close()
			if !i.Terminal {
				_, err = io.Copy(i.Out, content)
				return cmdline.Interrupted(err)
			}
			raw, err := io.ReadAll(content)
			if err != nil {
				return cmdline.Interrupted(err)
			}
			_, err = io.WriteString(i.Out, term.Plain(string(raw)))
			return err
		},
	}, &withheld)
}

func filePut(i *cmdline.Invocation) *cobra.Command {
	var (
		keep bool
		mode string
	)
	c := &cobra.Command{
		Use: "put SPACE FILE [PATH]", Short: "Write a file, or a folder with all its files, into a space", Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "Put writes a file of this machine to PATH in the space (default: its own name); - reads standard input and needs a PATH.\nA " +
			"folder is written with everything in it; what is not a regular file is left out and said.\n" +
			"What can be executed here can be executed there, unless --mode says otherwise.",
	}
	c.Flags().BoolVar(&keep, "no-overwrite", false, "refuse to replace a file")
	c.Flags().StringVar(&mode, "mode", "", "0755 for what is to be executed, 0644 for what is not (default: as on this machine)")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := space.CheckFileMode(mode); err != nil {
			return err
		}
		from, to := args[1], ""
		if len(args) > 2 {
			to = args[2]
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		write := func(content io.Reader, size int64, to, here string) error {
			entry, err := api.WriteFile(cmd.Context(), in, to, content, size, !keep, cmdline.First(mode, here))
			if err != nil {
				return err
			}
			return i.Show(entry, func(p *term.Printer) {
				p.Line("%s  %s", term.Plain(entry.Path), p.Paint(term.Faint, term.Bytesize(entry.Size)))
				if entry.Withheld {
					withheld(i, []string{entry.Path}, 1)
				}
			})
		}
		if from == "-" {
			if to == "" {
				return cmdline.Usage("name the PATH in the space to which standard input is written")
			}
			raw, err := io.ReadAll(i.In)
			if err != nil {
				return cmdline.Unreadable(err, from)
			}
			return write(bytes.NewReader(raw), int64(len(raw)), to, "")
		}
		return Put(i, from, cmdline.First(to, filepath.Base(filepath.Clean(from))), write)
	}
	return c
}

// Put writes a file of this machine, or every regular file below a folder. The mode is space.ModeExecutable for what can be executed
// here.
func Put(i *cmdline.Invocation, from, to string, write func(content io.Reader, size int64, to, mode string) error) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return cmdline.Unreadable(err, name)
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return cmdline.Unreadable(err, name)
		}
		info, err := os.Stat(name)
		if rel != "." { // below a folder, links are not followed
			info, err = d.Info()
		}
		if err != nil {
			return cmdline.Unreadable(err, name)
		}
		if !info.Mode().IsRegular() {
			cmdline.Complain(i.Err, i.Printer(i.Err), fault.New(fault.Invalid, "not_a_file", "%s is not a regular file and is left out",
				term.OneLine(name, 200)))
			return nil
		}
		f, err := os.Open(name)
		if err != nil {
			return cmdline.Unreadable(err, name)
		}
		defer f.Close()
		mode := "" // that of a file which is replaced
		if info.Mode()&0o111 != 0 {
			mode = space.ModeExecutable
		}
		return write(f, info.Size(), path.Join(to, filepath.ToSlash(rel)), mode)
	})
}

func fileGet(i *cmdline.Invocation) *cobra.Command {
	var force, withheld bool
	c := &cobra.Command{
		Use: "get SPACE PATH [FILE]", Short: "Copy a file out of a space", Args: cobra.RangeArgs(2, 3), ValidArgsFunction: i.CompleteSpaces,
		Long: "Get writes a file of the space to FILE on this machine (default: its own name in the current directory).",
	}
	withheldFlag(c, &withheld)
	c.Flags().BoolVarP(&force, "force", "f", false, "replace FILE if it exists")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		target := path.Base(args[1])
		if len(args) > 2 {
			target = args[2]
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		content, err := fileContent(cmd.Context(), api, in, args[1], withheld)
		if err != nil {
			return err
		}
		defer content.Close()
		size, err := cmdline.Save(target, content, force)
		if err != nil {
			return err
		}
		return i.Show(map[string]any{"file": target, "size_bytes": size}, func(p *term.Printer) {
			p.Line("%s  %s", term.Plain(target), p.Paint(term.Faint, term.Bytesize(size)))
		})
	}
	return c
}

func fileRemove(i *cmdline.Invocation) *cobra.Command {
	var withheld bool
	return withheldFlag(&cobra.Command{
		Use: "rm SPACE PATH...", Short: "Delete files of a space", Args: cobra.MinimumNArgs(2), ValidArgsFunction: i.CompleteSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			in, err := i.Named(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			for _, name := range args[1:] {
				remove := api.DeleteFile
				if withheld {
					remove = api.DeleteWithheld
				}
				if err := remove(cmd.Context(), in, name); err != nil {
					return err
				}
			}
			return i.Show(map[string]any{"deleted": args[1:]}, func(*term.Printer) {})
		},
	}, &withheld)
}

// maxNamed is how many withheld files are named.
const maxNamed = 10

// withheld prints which files are withheld from code, or their number if the names are unknown.
func withheld(i *cmdline.Invocation, names []string, n int) {
	p, verb := i.Printer(i.Err), "files are"
	if n == 1 {
		verb = "file is"
	}
	text := ""
	for k, name := range names[:min(len(names), maxNamed)] {
		text += map[bool]string{true: ": ", false: ", "}[k == 0] + term.OneLine(name, 80)
	}
	if len(names) > maxNamed {
		text += " and others"
	}
	p.Line("%s", p.Paint(term.Yellow, fmt.Sprintf("%d %s withheld from code%s", n, verb, text)))
}

// withheldIn names the files that a new space withholds from code.
func withheldIn(ctx context.Context, i *cmdline.Invocation, api *client.Client, made space.Space) {
	if made.Withheld == 0 {
		return
	}
	var names []string
	if found, err := api.Files(ctx, made.ID, ".", true); err == nil { // the number is known all the same
		for _, e := range found.Entries {
			if e.Withheld && e.Type == "file" {
				names = append(names, e.Path)
			}
		}
	}
	withheld(i, names, made.Withheld)
}
