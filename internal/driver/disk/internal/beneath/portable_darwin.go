package beneath

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func statOf(info os.FileInfo) Stat {
	st := info.Sys().(*syscall.Stat_t)
	return Stat{
		Dev: uint64(st.Dev), Ino: st.Ino, Nlink: uint64(st.Nlink), Mode: uint32(st.Mode), Uid: st.Uid, Gid: st.Gid, Size: st.Size,
		Blocks: st.Blocks,
		Mtim:   Time{Sec: st.Mtimespec.Sec, Nsec: st.Mtimespec.Nsec}, Ctim: Time{Sec: st.Ctimespec.Sec, Nsec: st.Ctimespec.Nsec},
	}
}

func move(from *Folder, old string, to *Folder, name string) error {
	return unix.RenameatxNp(int(from.Fd()), old, int(to.Fd()), name, unix.RENAME_EXCL)
}
