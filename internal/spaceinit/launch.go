package spaceinit

// LauncherName is the name of a launcher in the host's list of processes. A launcher is the init's program, and starts inits.
const LauncherName = "agentbox-launcher"

// Apart and Along are the last argument of a launcher: whether it shall give itself mounts of its own. The ones before are the owner of the
// spaces and the number of groups to which it can return.
const (
	Apart = "apart"
	Along = "along"
)

// MaxLaunch is the most that one message between a daemon and its launcher holds.
const MaxLaunch = 4 << 10

// Scratches are folders of which a launcher's own root has each, and every host at least one. A space's root is built over it.
var Scratches = []string{"/tmp", "/mnt", "/run", "/var"}

// Launch asks a launcher to start an init. It is one message on a socket that keeps their bounds, together with descriptors: the init's end
// of its connection, its detached mounts, the tasks files of the groups to enter, and the folder of a group of version 2.
type Launch struct {
	Args    []string // of the process
	Inside  uint32   // the one user and group of the space
	User    uint32   // what they are on the host
	Group   uint32
	Groups  bool     // the launcher may take the groups of its own user away from the process
	Mounts  uint32   // how many there are
	Enter   []uint32 // the groups to start it in, by the number of the group to which the launcher then returns
	Unified bool     // there is a group of version 2
}

// Launched is the answer.
type Launched struct {
	PID    uint32 // of the init, which is a child of the thread that started the launcher; 0 for none
	Failed string // why there is none
	Lost   bool   // the launcher could not return to its own groups and ends
}

// Encode returns the message.
func (l Launch) Encode() []byte {
	var e encoder
	e.texts(l.Args)
	e.u32(l.Inside)
	e.u32(l.User)
	e.u32(l.Group)
	e.flag(l.Groups)
	e.u32(l.Mounts)
	e.u32(uint32(len(l.Enter)))
	for _, n := range l.Enter {
		e.u32(n)
	}
	e.flag(l.Unified)
	return e.b
}

// DecodeLaunch reads what Encode returned.
func DecodeLaunch(message []byte) (Launch, error) {
	d := decoder{b: message}
	l := Launch{Args: d.texts(), Inside: d.u32(), User: d.u32(), Group: d.u32(), Groups: d.flag(), Mounts: d.u32()}
	for range d.count(4) {
		l.Enter = append(l.Enter, d.u32())
	}
	l.Unified = d.flag()
	if len(l.Args) == 0 || l.Mounts > MaxMounts || len(l.Enter) > MaxMounts {
		d.bad = true
	}
	return l, d.end("launch")
}

// MaxMounts is how many descriptors of mounts an init can be given.
const MaxMounts = 32

// Encode returns the message.
func (l Launched) Encode() []byte {
	var e encoder
	e.u32(l.PID)
	e.text(l.Failed)
	e.flag(l.Lost)
	return e.b
}

// DecodeLaunched reads what Encode returned.
func DecodeLaunched(message []byte) (Launched, error) {
	d := decoder{b: message}
	l := Launched{PID: d.u32(), Failed: d.text(), Lost: d.flag()}
	if (l.PID == 0) == (l.Failed == "") {
		d.bad = true
	}
	return l, d.end("answer of the launcher")
}

// Devices are the nodes of a space's /dev, and of a launcher's. There is no disk. A host need not have Terminal.
var Devices = []string{"null", "zero", "full", "random", "urandom", Terminal}

// Terminal is the device that stands for the terminal of the session of the process that opens it. Every command has a session of its own.
// So it is a terminal of the space's own, or none.
const Terminal = "tty"

// Terminals is where a space has its own terminals, below its root.
const Terminals = "dev/pts"
