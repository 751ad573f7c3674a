package wire

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// maxIdle is how many connections may wait for a request, their first or the next one. Beyond it the one that has waited longest is
// closed: ten thousand clients that ask for nothing take no memory and no descriptors from those who do, and one that comes back connects
// anew.
const maxIdle = 1024

// idle are the connections that wait for a request, the one that has waited longest in front. The zero value is ready.
type idle struct {
	mu    sync.Mutex // guards both
	order list.List  // of net.Conn
	at    map[net.Conn]*list.Element
}

// turn is a http.Server's ConnState.
func (i *idle) turn(c net.Conn, s http.ConnState) {
	if longest := i.put(c, s == http.StateNew || s == http.StateIdle); longest != nil {
		_ = longest.Close() // its server finds out
	}
}

// put notes whether a connection waits, and returns the one that has to go for it, nil for none.
func (i *idle) put(c net.Conn, waits bool) net.Conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e := i.at[c]; e != nil {
		i.order.Remove(e)
		delete(i.at, c)
	}
	if !waits {
		return nil
	}
	if i.at == nil {
		i.at = map[net.Conn]*list.Element{}
	}
	i.at[c] = i.order.PushBack(c)
	if i.order.Len() <= maxIdle {
		return nil
	}
	longest := i.order.Remove(i.order.Front()).(net.Conn)
	delete(i.at, longest)
	return longest
}
