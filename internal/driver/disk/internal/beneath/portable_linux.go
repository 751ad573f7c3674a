//go:build portable

package beneath

import (
	"os"
	"syscall"
)

func statOf(info os.FileInfo) Stat {
	st := info.Sys().(*syscall.Stat_t)
	return Stat{
		Dev: st.Dev, Ino: st.Ino, Nlink: uint64(st.Nlink), Mode: st.Mode, Uid: st.Uid, Gid: st.Gid, Size: st.Size, Blocks: st.Blocks,
		Mtim: Time{Sec: st.Mtim.Sec, Nsec: st.Mtim.Nsec}, Ctim: Time{Sec: st.Ctim.Sec, Nsec: st.Ctim.Nsec},
	}
}

// move looks before it moves, for this is what stands in for systems that have no better way.
func move(from *Folder, old string, to *Folder, name string) error {
	if _, _, err := to.look(name); err == nil {
		return syscall.EEXIST
	} else if err != syscall.ENOENT {
		return err
	}
	return rename(from, old, to, name)
}
