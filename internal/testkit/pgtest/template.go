package pgtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// template is the data folder that initdb makes, which takes a second of processor time. Each user has one for each version of the server.
// Every server of a test begins with a copy. It is made in another folder and moved to its place, so that a template is always complete.
func (s *Server) template() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	program, err := os.Stat(filepath.Join(s.programs, "postgres"))
	if err != nil {
		return "", err
	}
	version := filepath.Base(filepath.Dir(s.programs))
	place := filepath.Join(cache, "agentbox", "pgtest", fmt.Sprintf("%s-%x-%x", version, program.Size(), program.ModTime().UnixNano()))
	if _, err := os.Stat(place); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return place, err
	}
	made := filepath.Join(s.dir, "template")
	err = s.run("initdb", "--pgdata", made, "--auth", "trust", "--username", User, "--encoding", "UTF8", "--no-locale", "--no-sync")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		return "", err
	}
	beside, err := os.MkdirTemp(filepath.Dir(place), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(beside)
	if err := duplicate(made, filepath.Join(beside, "db")); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(beside, "db"), place); err != nil && !isFile(filepath.Join(place, "PG_VERSION")) {
		return "", err // and not because another test was first
	}
	return place, os.RemoveAll(made)
}

// fill puts a copy of the template into the server's folder.
func (s *Server) fill() error {
	from, err := s.template()
	if err != nil {
		return err
	}
	if err := duplicate(from, s.data()); err != nil || s.owner.Credential == nil {
		return err
	}
	return filepath.WalkDir(s.data(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(s.owner.Credential.Uid), int(s.owner.Credential.Gid))
	})
}

// duplicate copies a folder.
func duplicate(from, to string) error {
	out, err := exec.Command("cp", "-R", "--reflink=auto", from, to).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("copy %s: %w\n%s", from, err, out)
	}
	return err
}

// place makes the folder of a server. It lies in memory if the host has room for that, because tests of crashes of the server lose nothing
// by that and need not wait for a disk.
func place(disk bool) (string, error) {
	const memory, enough = "/dev/shm", 4 << 30
	const tmpfs = 0x01021994
	var st syscall.Statfs_t
	if !disk && syscall.Statfs(memory, &st) == nil && st.Type == tmpfs && int64(st.Bavail)*st.Bsize >= enough {
		if dir, err := os.MkdirTemp(memory, prefix); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", prefix)
}

const prefix = "agentbox-pg-" // short: the path of a socket may have a hundred bytes
