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

// Messages to the Rust process, one JSON value per line. It responds to all of them except leaves.
type (
	// operates requests a turn of an operation.
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

	// leaves reports that the reader of a stream has closed it.
	leaves struct {
		Leaves uint64 `json:"leaves"`
	}
)

// Responses of the Rust process.
type (
	// happened is the effect of a turn of an operation.
	happened struct {
		Delivers []delivery `json:"delivers"`
		// Pass is the time for all goroutines to continue, in milliseconds.
		Pass int64 `json:"pass"`
		// More is whether another turn follows.
		More bool `json:"more"`
	}

	// answered is a response, or the failure of the connection.
	answered struct {
		// Failure is refused, reset or empty.
		Failure string            `json:"failure"`
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		delivery
	}

	// delivery is data of a body.
	delivery struct {
		// Stream is the number of the body's stream.
		Stream uint64 `json:"stream"`
		Bytes  string `json:"bytes"`
		// End is closed, broken or empty.
		End string `json:"end"`
	}
)

// far is the server in the Rust process, as an http.RoundTripper. Virtual time does not advance during a call
// to the process, because a goroutine that reads from a pipe is not durably blocked.
type far struct {
	begin time.Time

	lock    sync.Mutex
	streams map[uint64]*body
}

// body is the body of a response. Its channels are created in the bubble, so a goroutine that reads it is
// durably blocked.
type body struct {
	far   *far
	id    uint64
	comes chan delivery
	left  chan struct{}
	leave sync.Once
	// Received and unread data.
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
