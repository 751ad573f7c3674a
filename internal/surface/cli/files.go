package cli

import (
	"bytes"
	"context"
	"errors"
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
)

// files are the commands about the files of a space.
func files(i *invocation) *cobra.Command {
	return group("files", "List, read, write and remove files of a space", fileList(i), fileCat(i), filePut(i), fileGet(i), fileRemove(i))
}

func fileList(i *invocation) *cobra.Command {
	var deep bool
	c := &cobra.Command{Use: "ls SPACE [FOLDER]", Aliases: []string{"list"}, Short: "List files", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: i.completeSpaces}
	c.Flags().BoolVarP(&deep, "recursive", "r", false, "also what is in the folders")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		found, err := api.Files(cmd.Context(), in, first(append(args[1:], ".")...), deep)
		if err != nil {
			return err
		}
		return i.show(found, func(p *printer) {
			now := i.Clock.Now()
			rows := make([][]cell, len(found.Entries))
			for n, e := range found.Entries {
				size, name := bytesize(e.Size), cell{oneLine(e.Path, 0), ""}
				switch e.Type {
				case "directory":
					size, name = "-", cell{name.text + "/", cyan}
				case "symlink":
					name.text += " -> " + oneLine(e.Target, 0)
				}
				if e.Withheld {
					name = cell{name.text + "  (withheld from code)", yellow}
				}
				rows[n] = []cell{{e.Mode, faint}, {size, ""}, {ago(now, e.Modified), faint}, name}
			}
			p.table("The folder is empty.", []string{"mode", "size", "changed", "path"}, rows)
			if found.Truncated {
				p.line("%s", p.paint(yellow, "There is more than one listing holds; list the folders one by one."))
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

func fileCat(i *invocation) *cobra.Command {
	var withheld bool
	return withheldFlag(&cobra.Command{
		Use: "cat SPACE PATH", Short: "Print a file", Args: cobra.ExactArgs(2), ValidArgsFunction: i.completeSpaces,
		Long: "Cat prints a file. On a terminal what a terminal would obey is made visible; into a pipe the bytes go as they are.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			in, err := i.named(cmd.Context(), api, args[0])
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
				return interrupted(err)
			}
			raw, err := io.ReadAll(content)
			if err != nil {
				return interrupted(err)
			}
			_, err = io.WriteString(i.Out, plain(string(raw)))
			return err
		},
	}, &withheld)
}

// interrupted is the fault of content that ended too early.
func interrupted(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.Unavailable, "transfer_interrupted", "the file did not come through to its end")
}

func filePut(i *invocation) *cobra.Command {
	var (
		keep bool
		mode string
	)
	c := &cobra.Command{
		Use: "put SPACE FILE [PATH]", Short: "Write a file, or a folder with all its files, into a space", Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: i.completeSpaces,
		Long: "Put writes a file of this machine to PATH in the space (default: its own name); - reads standard input and needs a PATH.\nA " +
			"folder is written with everything in it; what is no regular file is left out and said.\n" +
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
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		write := func(content io.Reader, size int64, to, here string) error {
			entry, err := api.WriteFile(cmd.Context(), in, to, content, size, !keep, first(mode, here))
			if err != nil {
				return err
			}
			return i.show(entry, func(p *printer) {
				p.line("%s  %s", plain(entry.Path), p.paint(faint, bytesize(entry.Size)))
				if entry.Withheld {
					i.withheld([]string{entry.Path}, 1)
				}
			})
		}
		if from == "-" {
			if to == "" {
				return usage("name the PATH in the space to which standard input is written")
			}
			raw, err := io.ReadAll(i.In)
			if err != nil {
				return unreadable(err, from)
			}
			return write(bytes.NewReader(raw), int64(len(raw)), to, "")
		}
		return i.put(from, first(to, filepath.Base(filepath.Clean(from))), write)
	}
	return c
}

// put writes a file of this machine, or every regular file below a folder. The mode is space.ModeExecutable for what can be executed here.
func (i *invocation) put(from, to string, write func(content io.Reader, size int64, to, mode string) error) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return unreadable(err, name)
		}
		if d.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(from, name)
		if err != nil {
			return unreadable(err, name)
		}
		info, err := os.Stat(name)
		if rel != "." { // below a folder, links are not followed
			info, err = d.Info()
		}
		if err != nil {
			return unreadable(err, name)
		}
		if !info.Mode().IsRegular() {
			complain(i.Err, i.printer(i.Err), fault.New(fault.Invalid, "not_a_file", "%s is no regular file and is left out", oneLine(name, 200)))
			return nil
		}
		f, err := os.Open(name)
		if err != nil {
			return unreadable(err, name)
		}
		defer f.Close()
		mode := "" // that of a file which is replaced
		if info.Mode()&0o111 != 0 {
			mode = space.ModeExecutable
		}
		return write(f, info.Size(), path.Join(to, filepath.ToSlash(rel)), mode)
	})
}

func fileGet(i *invocation) *cobra.Command {
	var force, withheld bool
	c := &cobra.Command{
		Use: "get SPACE PATH [FILE]", Short: "Copy a file out of a space", Args: cobra.RangeArgs(2, 3), ValidArgsFunction: i.completeSpaces,
		Long: "Get writes a file of the space to FILE on this machine (default: its own name in the current directory).",
	}
	withheldFlag(c, &withheld)
	c.Flags().BoolVarP(&force, "force", "f", false, "replace FILE if it exists")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		target := path.Base(args[1])
		if len(args) > 2 {
			target = args[2]
		}
		in, err := i.named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		content, err := fileContent(cmd.Context(), api, in, args[1], withheld)
		if err != nil {
			return err
		}
		defer content.Close()
		size, err := save(target, content, force)
		if err != nil {
			return err
		}
		return i.show(map[string]any{"file": target, "size_bytes": size}, func(p *printer) {
			p.line("%s  %s", plain(target), p.paint(faint, bytesize(size)))
		})
	}
	return c
}

// savable says why save will not write a file of this machine, as far as that is seen before there is anything to write.
func savable(target string, force bool) error {
	if err := vacant(target, force); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".agentbox-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", oneLine(target, 200))
	}
	return nil
}

// vacant refuses a name that is taken by what is not to be replaced.
func vacant(target string, force bool) error {
	info, err := os.Lstat(target)
	switch {
	case err != nil || force && info.Mode().IsRegular():
		return nil // what is wrong with its folder is seen when it is written
	case info.IsDir():
		return fault.New(fault.Conflict, "file_exists", "%s is a folder", oneLine(target, 200)).With("name a file in it")
	case !info.Mode().IsRegular():
		return fault.New(fault.Conflict, "file_exists", "%s exists already, and is no regular file", oneLine(target,
			200)).With("name another file")
	}
	return fault.New(fault.Conflict, "file_exists", "%s exists already", oneLine(target,
		200)).With("name another file, or replace it with --force")
}

// save writes a file of this machine as a whole or not at all, never through a link, and replaces one only when told to.
func save(target string, content io.Reader, force bool) (int64, error) {
	if err := vacant(target, force); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".agentbox-*")
	if err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", oneLine(target, 200))
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has moved to its place, or is of no use
	size, err := io.Copy(f, content)
	if err != nil {
		_ = f.Close()
		return 0, interrupted(err)
	}
	if err := f.Close(); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", oneLine(target, 200))
	}
	if force {
		err = os.Rename(f.Name(), target)
	} else {
		err = os.Link(f.Name(), target) // fails where another has come first
	}
	if err != nil {
		return 0, fault.Wrap(err, fault.Conflict, "file_unwritable", "%s cannot be written", oneLine(target, 200))
	}
	return size, nil
}

func fileRemove(i *invocation) *cobra.Command {
	var withheld bool
	return withheldFlag(&cobra.Command{
		Use: "rm SPACE PATH...", Short: "Delete files of a space", Args: cobra.MinimumNArgs(2), ValidArgsFunction: i.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.connect(cmd.Context())
			if err != nil {
				return err
			}
			in, err := i.named(cmd.Context(), api, args[0])
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
			return i.show(map[string]any{"deleted": args[1:]}, func(*printer) {})
		},
	}, &withheld)
}

// maxNamed is how many withheld files are named.
const maxNamed = 10

// withheld says that files were kept from code. Where their names are not known it says how many there are.
func (i *invocation) withheld(names []string, n int) {
	p, verb := i.printer(i.Err), "files are"
	if n == 1 {
		verb = "file is"
	}
	text := ""
	for k, name := range names[:min(len(names), maxNamed)] {
		text += map[bool]string{true: ": ", false: ", "}[k == 0] + oneLine(name, 80)
	}
	if len(names) > maxNamed {
		text += " and others"
	}
	p.line("%s", p.paint(yellow, fmt.Sprintf("%d %s withheld from code%s", n, verb, text)))
}

// withheldIn names the files that a new space withholds from code.
func (i *invocation) withheldIn(ctx context.Context, api *client.Client, made space.Space) {
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
	i.withheld(names, made.Withheld)
}
