//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// The descriptors that a launcher is started with; the ones after them are the tasks files of the daemon's own groups.
const (
	orders    = 3 // the socket that carries the requests
	image     = 4 // this program
	firstHome = 5
)

// launcher starts inits on behalf of a daemon. It is small, so it forks fast, and its thread enters the groups of a space instead of a
// thread of the daemon. It listens to the daemon only, and every init that it starts is the daemon's child, not its own.
type launcher struct {
	image   int
	homes   []int // tasks files of the groups in which it belongs
	scratch [spaceinit.MaxLaunch]byte
	rights  [1024]byte
}

// launch serves until the daemon is gone. It runs on one thread: that one enters groups, and forks.
func launch(homes int, apart bool) error {
	runtime.LockOSThread()
	l := &launcher{image: image}
	for n := range homes {
		l.homes = append(l.homes, firstHome+n)
	}
	// A space must not see the rest of the daemon's own environment.
	if err := unix.CloseRange(uint(firstHome+homes), math.MaxUint32, 0); err != nil {
		return err
	}
	if err := unix.CloseRange(orders, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	if apart {
		if err := retreat(); err != nil {
			return err
		}
	}
	if err := keepOnly(unix.CAP_SETUID, unix.CAP_SETGID); err != nil {
		return err
	}
	for {
		done, err := l.serve()
		if done || err != nil {
			return err
		}
	}
}

// serve handles one message.
func (l *launcher) serve() (done bool, err error) {
	n, fds, err := l.receive()
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if err != nil || n == 0 {
		return true, err
	}
	var answer spaceinit.Launched
	pid, err := l.start(l.scratch[:n], fds, &answer)
	if answer.PID = uint32(pid); err != nil {
		answer.PID, answer.Failed = 0, err.Error()
	}
	return answer.Lost, again(func() error { return unix.Sendto(orders, answer.Encode(), unix.MSG_NOSIGNAL, nil) })
}

// receive takes a message and its descriptors.
func (l *launcher) receive() (int, []int, error) {
	for {
		n, rights, flags, _, err := unix.Recvmsg(orders, l.scratch[:], l.rights[:], unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return 0, nil, err
		}
		var fds []int
		messages, err := unix.ParseSocketControlMessage(l.rights[:rights])
		for _, m := range messages {
			some, failed := unix.ParseUnixRights(&m)
			fds, err = append(fds, some...), errors.Join(err, failed)
		}
		if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			err = errors.Join(err, errors.New("a message was cut off"))
		}
		return n, fds, err
	}
}

// start starts an init as the message says.
func (l *launcher) start(message []byte, fds []int, answer *spaceinit.Launched) (int, error) {
	request, err := spaceinit.DecodeLaunch(message)
	if err != nil {
		return 0, err
	}
	first := 1 + int(request.Mounts)
	want := first + len(request.Enter)
	if request.Unified {
		want++
	}
	if len(fds) != want {
		return 0, fmt.Errorf("%d descriptors came, not %d", len(fds), want)
	}
	b, err := newBirth(request, append([]int{fds[0], l.image}, fds[1:first]...))
	defer b.close()
	if err != nil {
		return 0, err
	}
	if request.Unified {
		b.group = fds[want-1]
	}
	var left []uint32
	for i, home := range request.Enter {
		if int(home) >= len(l.homes) {
			err = fmt.Errorf("there is no group %d to return to", home)
		} else if err = enter(fds[first+i]); err == nil {
			left = append(left, home)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = b.fork()
	}
	for _, home := range left {
		if failed := enter(l.homes[home]); failed != nil {
			// The next command would start in the wrong group.
			err, answer.Lost = errors.Join(err, fmt.Errorf("return from the space's group: %w", failed)), true
		}
	}
	if err != nil {
		b.abandon()
		return 0, err
	}
	if err := b.admit(request); err != nil {
		b.abandon()
		return 0, err
	}
	return b.pid, nil
}

// enter moves this thread into the group of a tasks file. A thread that moves itself does not wait as one that is moved does.
func enter(tasks int) error {
	return again(func() error {
		_, err := unix.Pwrite(tasks, []byte("0"), 0)
		return err
	})
}

// again calls the kernel until no signal, as the runtime sends them to its own threads, interrupts it.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// admit gives the child its user, which only somebody outside its namespace can, and lets it go on to execute the program.
func (b *birth) admit(request spaceinit.Launch) error {
	folder := "/proc/" + strconv.Itoa(b.pid) + "/"
	one := func(host uint32) string { return fmt.Sprintf("%d %d 1\n", request.Inside, host) }
	groups := "allow"
	if !request.Groups {
		groups = "deny"
	}
	for _, f := range [][2]string{{"uid_map", one(request.User)}, {"setgroups", groups}, {"gid_map", one(request.Group)}} {
		if err := put(folder+f[0], f[1]); err != nil {
			return fmt.Errorf("write %s: %w", f[0], err)
		}
	}
	return b.proceed()
}

// put writes to a file that exists.
func put(path, content string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = again(func() error {
		_, err := unix.Write(fd, []byte(content))
		return err
	})
	return errors.Join(err, unix.Close(fd))
}

// retreat empties this process's own mount namespace almost completely, because each init starts with a
// copy of it and has to leave that.
func retreat() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	root := ""
	for _, dir := range spaceinit.Scratches {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			root = dir
			break
		}
	}
	sources := []string{"/proc"}
	for _, name := range spaceinit.Devices {
		sources = append(sources, "/dev/"+name)
	}
	trees := make([]int, len(sources))
	for i, source := range sources {
		var err error
		trees[i], err = unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil && (err != unix.ENOENT || source != "/dev/"+spaceinit.Terminal) {
			return fmt.Errorf("open %s: %w", source, err)
		}
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=64k,nr_inodes=32,mode=0755"); err != nil {
		return fmt.Errorf("mount the launcher's root on %q: %w", root, err)
	}
	if err := unix.Chdir(root); err != nil {
		return err
	}
	for _, dir := range append([]string{"/dev"}, spaceinit.Scratches...) {
		if err := unix.Mkdir(dir[1:], 0o755); err != nil {
			return err
		}
	}
	for i, source := range sources {
		if trees[i] < 0 {
			continue
		}
		if err := attach(spaceinit.Mount{Target: source[1:], File: i > 0}, trees[i]); err != nil {
			return fmt.Errorf("mount %s: %w", source, err)
		}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the launcher's root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return unix.Chdir("/")
}

// keepOnly gives up every privilege but those named.
func keepOnly(kept ...uint) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if unix.Geteuid() != 0 {
		return nil // it has none
	}
	var some [2]unix.CapUserData
	for _, c := range kept {
		some[c/32].Effective |= 1 << (c % 32)
		some[c/32].Permitted |= 1 << (c % 32)
	}
	return setCapabilities(&some)
}
