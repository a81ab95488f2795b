package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"time"

	"lessor"
)

// handle is a handler, with the type of the body it takes.
type handle struct {
	run   func(*call) error
	in    reflect.Type // nil = no body
	limit int64        // of the body, in bytes
}

// plain is a handler without a body, of a route that may stream.
func plain(h func(*call) error) handle {
	return handle{run: func(c *call) error {
		if err := c.skipBody(); err != nil {
			return err
		}
		if c.route.stream {
			c.deadlines(time.Time{}, time.Time{})
		}
		return h(c)
	}}
}

// takes is a handler with a body of type T, decoded strictly. A body may be left out where no field of T is required.
// The refusal of a body names every field that is wrong: the handler's own, those that contradict the document, and
// those that check, if given, refuses of a body that cannot be decoded.
func takes[T any](limit int64, h func(*call, *T) error, check ...func(*call, *T) error) handle {
	in := reflect.TypeFor[T]()
	return handle{in: in, limit: limit, run: func(c *call) error {
		b, err := c.body(limit)
		if err != nil {
			return err
		}
		v := new(T)
		err = decode(b, v)
		if err == nil {
			if err = h(c, v); err == nil {
				return nil
			}
			return joined(err, refusalOf(b, new(T), nil))
		}
		for _, more := range check {
			err = joined(err, more(c, v))
		}
		return err
	}}
}

// slowest is the least speed of a body in bytes per second, after the time that every request has. Only callers with
// access send one.
const slowest = 256 * kib

// body reads the request's body. Its bytes count against maxBodies until the request is answered. However long the body
// took, the answer has its own time.
func (c *call) body(limit int64) ([]byte, error) {
	rc := http.NewResponseController(c.w)
	defer func() { _ = rc.SetWriteDeadline(time.Now().Add(writeTime)) }()
	if more := time.Duration(limit/slowest) * time.Second; more > 0 { // than the readTime of every request
		_ = rc.SetReadDeadline(time.Now().Add(readTime + more))
	}
	if c.r.ContentLength > limit {
		c.discard()
		return nil, errTooLarge(limit)
	}
	b, err := c.readBody(limit)
	switch {
	case errors.Is(err, errBodies):
		_ = rc.EnableFullDuplex() // the answer does not wait for the body
		c.unread = true
		return nil, err
	case tooLarge(err):
		c.discard()
		return nil, errTooLarge(limit)
	case err != nil && c.r.Context().Err() != nil:
		return nil, c.r.Context().Err()
	case err != nil:
		return nil, badBody("could not be read to its end")
	}
	return b, nil
}

// skipBody reads what a client sends to a route that takes no body, while the time for reading is limited: the server
// would do so before the answer, perhaps without a limit.
func (c *call) skipBody() error {
	if c.r.ContentLength == 0 {
		return nil
	}
	_, err := c.body(bodySmall)
	c.dropBody()
	return err
}

// readBody reads up to limit bytes, if maxBodies has room for them. A body without a length counts as it grows.
func (c *call) readBody(limit int64) ([]byte, error) {
	size := c.r.ContentLength
	if size < 0 {
		size = min(limit, bodySmall)
	}
	if !c.countBody(size) {
		return nil, errBodies
	}
	body := http.MaxBytesReader(c.w.ResponseWriter, c.r.Body, limit)
	b := make([]byte, 0, size+1) // one more, to read io.EOF
	for {
		n, err := body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		case len(b) < cap(b):
			continue
		}
		if !c.countBody(min(2*int64(cap(b)), limit)) {
			return nil, errBodies
		}
		b = append(make([]byte, 0, 2*cap(b)), b...)
	}
}

// Bodies up to bodyFree are not counted: a connection and its headers cost as much. Bodies up to bodyLight, such as
// heartbeats, do not count against their tenant's share.
const (
	bodyFree  = 16 * kib
	bodyLight = bodyBeat
)

var errBodies = &lessor.Error{
	Code: lessor.CodeRateLimited, Detail: "too many bytes are being received", RetryAfter: time.Second,
}

// countBody counts a body of the size known so far, and reports whether there is room for it.
func (c *call) countBody(size int64) bool {
	if size <= bodyFree {
		return true
	}
	enter := c.api.bodies.Enter
	if size <= bodyLight {
		enter = c.api.bodies.EnterSmall
	}
	if !enter(c.caller.Tenant, size-c.bytes) {
		return false
	}
	c.bytes = size
	return true
}

// dropBody ends the counting of the body.
func (c *call) dropBody() {
	if c.bytes > 0 {
		c.api.bodies.Leave(c.caller.Tenant, c.bytes)
		c.bytes = 0
	}
}

// endBody releases the body after the answer.
func (c *call) endBody() {
	c.dropBody()
	if c.unread {
		_ = http.NewResponseController(c.w).Flush()
		c.discard()
	}
}

// maxDiscard bounds the bytes that are read of a refused body.
const maxDiscard = 2 * bodyBatch

// discard reads the rest of a body that is too large: most clients send all of it before they read an answer, and would
// only see the connection break. A client that sent Expect does not send the body.
func (c *call) discard() {
	if c.r.Header.Get("Expect") == "" {
		_, _ = io.CopyN(io.Discard, c.r.Body, maxDiscard)
	}
}

func errTooLarge(limit int64) error {
	return &lessor.Error{
		Code:   lessor.CodePayloadTooLarge,
		Detail: fmt.Sprintf("the body is larger than %d bytes", limit),
	}
}

// badBody refuses a body as a whole.
func badBody(message string) error { return badField("body", message) }

// badField refuses a field that does not exist or has the wrong type.
func badField(field, message string) error {
	return &lessor.Error{
		Code: lessor.CodeInvalidRequest, Detail: "the request is not well-formed",
		Fields: []lessor.FieldError{{Field: field, Message: message}},
	}
}

// badValue refuses a value that is not allowed.
func badValue(field, message string) error {
	return &lessor.Error{
		Code: lessor.CodeInvalidValue, Detail: "a value is not allowed",
		Fields: []lessor.FieldError{{Field: field, Message: message}},
	}
}
