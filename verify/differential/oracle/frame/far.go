package frame

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What goes over to the other process, one JSON text a line. It answers all but leaves.
type (
	// operates asks it to carry an operation out, in as many turns as it wants.
	operates struct {
		At        time.Duration `json:"at"`
		Operation int           `json:"operation"`
		Turn      int           `json:"turn"`
	}

	// requests is an HTTP request.
	requests struct {
		At    time.Duration `json:"at"`
		Path  string        `json:"path"`
		Query string        `json:"query"`
	}

	// leaves says that nobody reads a stream any more.
	leaves struct {
		Leaves uint64 `json:"leaves"`
	}
)

// What comes back.
type (
	// happened is what a turn of an operation did.
	happened struct {
		Delivers []delivery `json:"delivers"`
		// Pass is so many milliseconds, in which everyone goes on.
		Pass int64 `json:"pass"`
		// More tells that there is another turn.
		More bool `json:"more"`
	}

	// answered is an answer, or what became of the connection.
	answered struct {
		// Failure is refused, reset or nothing.
		Failure string            `json:"failure"`
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		delivery
	}

	// delivery is what comes of a body.
	delivery struct {
		// Stream is its number.
		Stream uint64 `json:"stream"`
		Bytes  string `json:"bytes"`
		// End is closed, broken or nothing.
		End string `json:"end"`
	}
)

// far is the server in the other process, as an http.RoundTripper. While that answers, virtual time
// stands still: reading from it does not count as rest.
type far struct {
	begin time.Time

	lock    sync.Mutex
	streams map[uint64]*body
}

// body is that of an answer. Its channels are made in the bubble, so whoever reads it is at rest.
type body struct {
	far   *far
	id    uint64
	comes chan delivery
	left  chan struct{}
	leave sync.Once
	// What has come and has not been read.
	bytes string
	end   error
}

func newFar() *far {
	return &far{begin: time.Now(), streams: map[uint64]*body{}}
}

func (f *far) operate(operation, turn int) happened {
	var reply happened
	ask(operates{time.Since(f.begin), operation, turn}, &reply)
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, delivery := range reply.Delivers {
		if stream := f.streams[delivery.Stream]; stream != nil {
			stream.comes <- delivery
		}
	}
	return reply
}

// RoundTrip implements http.RoundTripper.
func (f *far) RoundTrip(request *http.Request) (*http.Response, error) {
	var reply answered
	ask(requests{time.Since(f.begin), request.URL.Path, request.URL.RawQuery}, &reply)
	switch reply.Failure {
	case "refused":
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case "reset":
		return nil, reset()
	}
	header := http.Header{}
	for name, value := range reply.Headers {
		header.Set(name, value)
	}
	stream := &body{far: f, id: reply.Stream, comes: make(chan delivery, many), left: make(chan struct{})}
	stream.comes <- reply.delivery
	f.lock.Lock()
	f.streams[stream.id] = stream
	f.lock.Unlock()
	return &http.Response{StatusCode: reply.Status, Header: header, Body: stream, Request: request}, nil
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	for b.bytes == "" && b.end == nil {
		select {
		case delivery := <-b.comes:
			b.bytes = delivery.Bytes
			switch delivery.End {
			case "closed":
				b.end = io.EOF
			case "broken":
				b.end = reset()
			}
		case <-b.left:
			return 0, os.ErrClosed
		}
	}
	if b.bytes == "" {
		return 0, b.end
	}
	read := strings.NewReader(b.bytes)
	n, err := read.Read(into)
	b.bytes = b.bytes[n:]
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.leave.Do(func() {
		close(b.left)
		tell(leaves{b.id})
		b.far.lock.Lock()
		delete(b.far.streams, b.id)
		b.far.lock.Unlock()
	})
	return nil
}

func reset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}
