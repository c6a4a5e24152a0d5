// Package rpc calls functions of Weir's RPC servers from Go, over TCP, TLS and unix sockets.
//
//	client, err := rpc.Dial("tcp://127.0.0.1:9000", nil)
//	var sum int32
//	err = client.Call(ctx, "shop.add", []any{2, 3}, &sum)
//
// cmd/weir-rpc-go writes typed functions from what `weir rpc list --json` prints. A client may be used by
// any number of goroutines; their calls share one connection. It has no streams, attachments, metadata or
// compression, and no RDMA: these are in C++, and the library for C has RDMA (rpc/c).
package rpc

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"
)

// Options of a connection; the zero value, and nil, are the defaults.
type Options struct {
	Timeout      time.Duration // to connect and for the server's hello; 0: 5 s
	Token        string        // shown to the server, where its authenticate asks for one
	TLS          *tls.Config   // for tls://
	MaxBodyBytes uint32        // of a result; 0: 64 MiB
}

// The frame's layout is in rpc/wire/frame.hpp.
const (
	headerBytes     = 40
	frameVersion    = 1
	kindRequest     = 1
	kindReply       = 2
	kindCancel      = 3
	kindGoodbye     = 4
	kindPing        = 8
	kindPong        = 9
	kindCredentials = 10
	kindSettings    = 11
	ownHello        = 1 << 32 // version 1, and nothing besides what every release does
	idempotentFlag  = 1
	maxTokenBytes   = 1 << 16
)

type header struct {
	kind       byte
	flags      uint16
	status     uint16
	id, method uint64
	timeoutUs  uint32
	body       uint32
	attachment uint32
}

func (h header) append(to []byte) []byte {
	var b [headerBytes]byte
	b[0], b[1], b[2], b[3] = 'W', 'r', frameVersion, h.kind
	binary.LittleEndian.PutUint16(b[4:], h.flags)
	binary.LittleEndian.PutUint64(b[8:], h.id)
	binary.LittleEndian.PutUint64(b[16:], h.method)
	binary.LittleEndian.PutUint32(b[24:], h.timeoutUs)
	binary.LittleEndian.PutUint32(b[28:], h.body)
	return append(to, b[:]...)
}

func parseHeader(b []byte) (header, error) {
	if b[0] != 'W' || b[1] != 'r' || b[2] != frameVersion {
		return header{}, &Error{Protocol, "the server does not speak Weir's RPC"}
	}
	return header{
		kind:       b[3],
		flags:      binary.LittleEndian.Uint16(b[4:]),
		status:     binary.LittleEndian.Uint16(b[6:]),
		id:         binary.LittleEndian.Uint64(b[8:]),
		body:       binary.LittleEndian.Uint32(b[28:]),
		attachment: binary.LittleEndian.Uint32(b[32:]),
	}, nil
}

type reply struct {
	body []byte
	err  error
}

// Client is a connection to a server.
type Client struct {
	conn    net.Conn
	maxBody uint32

	write sync.Mutex // keeps frames whole

	mutex    sync.Mutex // guards all below
	next     uint64
	waiting  map[uint64]chan reply // each with room for its one reply
	ended    error
	draining bool
}

// Dial connects to "tcp://HOST:PORT", "tls://HOST:PORT" or "unix:///PATH".
func Dial(address string, options *Options) (*Client, error) {
	chosen := Options{}
	if options != nil {
		chosen = *options
	}
	if chosen.Timeout == 0 {
		chosen.Timeout = 5 * time.Second
	}
	if chosen.MaxBodyBytes == 0 {
		chosen.MaxBodyBytes = 64 << 20
	}
	if len(chosen.Token) > maxTokenBytes {
		return nil, &Error{BadSetting, "the token is longer than 64 KiB"}
	}
	conn, err := connect(address, chosen)
	if err != nil {
		return nil, err
	}
	client := &Client{conn: conn, maxBody: chosen.MaxBodyBytes, waiting: map[uint64]chan reply{}}
	if err := client.greet(chosen); err != nil {
		conn.Close()
		return nil, err
	}
	go client.read()
	return client, nil
}

func connect(address string, options Options) (net.Conn, error) {
	scheme, where, found := strings.Cut(address, "://")
	if !found {
		return nil, &Error{BadAddress, "'" + address + "' has no ://; write tcp://HOST:PORT"}
	}
	dialer := &net.Dialer{Timeout: options.Timeout}
	var conn net.Conn
	var err error
	switch scheme {
	case "tcp", "unix":
		conn, err = dialer.Dial(scheme, where)
	case "tls":
		conn, err = tls.DialWithDialer(dialer, "tcp", where, options.TLS)
	default:
		return nil, &Error{BadAddress, "Go's client has tcp://, tls:// and unix://, not " + scheme + "://"}
	}
	if err != nil {
		return nil, &Error{Unreachable, "cannot connect to " + address + ": " + err.Error()}
	}
	return conn, nil
}

// Both ends begin with their hello (rpc/wire/hello.hpp); a server that accepts and stays silent is unreachable.
func (c *Client) greet(options Options) error {
	c.conn.SetDeadline(time.Now().Add(options.Timeout))
	out := header{kind: kindSettings, id: ownHello}.append(nil)
	if options.Token != "" {
		out = header{kind: kindCredentials, body: uint32(len(options.Token))}.append(out)
		out = append(out, options.Token...)
	}
	if _, err := c.conn.Write(out); err != nil {
		return &Error{Unreachable, "the server's hello did not come: " + err.Error()}
	}
	for {
		h, body, err := c.readFrame()
		if err != nil {
			return &Error{Unreachable, "the server's hello did not come: " + err.Error()}
		}
		if h.kind == kindSettings {
			c.conn.SetDeadline(time.Time{})
			return nil
		}
		if h.kind == kindReply && h.id == 0 {
			return &Error{Code(h.status), string(body)}
		}
	}
}

func (c *Client) readFrame() (header, []byte, error) {
	var b [headerBytes]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return header{}, nil, err
	}
	h, err := parseHeader(b[:])
	if err != nil {
		return header{}, nil, err
	}
	if h.body > c.maxBody {
		return header{}, nil, &Error{TooLarge, fmt.Sprintf("a result of %d bytes; the limit is %d", h.body, c.maxBody)}
	}
	body := make([]byte, h.body)
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return header{}, nil, err
	}
	if _, err := io.CopyN(io.Discard, c.conn, int64(h.attachment)); err != nil {
		return header{}, nil, err
	}
	return h, body, nil
}

func (c *Client) read() {
	for {
		h, body, err := c.readFrame()
		if err != nil {
			c.end(&Error{ConnectionLost, "the connection to the server ended: " + err.Error()})
			return
		}
		switch h.kind {
		case kindPing: // a server ends connections of clients that do not answer
			c.send(header{kind: kindPong, id: h.id}.append(nil))
		case kindGoodbye:
			c.mutex.Lock()
			c.draining = true
			c.mutex.Unlock()
		case kindReply:
			if h.id == 0 {
				c.end(&Error{Code(h.status), string(body)})
				return
			}
			c.finish(h.id, body, h.status)
		}
	}
}

func (c *Client) finish(id uint64, body []byte, status uint16) {
	c.mutex.Lock()
	waiting := c.waiting[id]
	delete(c.waiting, id)
	c.mutex.Unlock()
	if waiting == nil { // its caller gave up
		return
	}
	if status != 0 {
		waiting <- reply{err: &Error{Code(status), string(body)}}
		return
	}
	waiting <- reply{body: body}
}

// All calls end with `why`, and later ones do at once.
func (c *Client) end(why error) {
	c.mutex.Lock()
	if c.ended == nil {
		c.ended = why
	}
	waiting := c.waiting
	c.waiting = map[uint64]chan reply{}
	c.mutex.Unlock()
	c.conn.Close()
	for _, one := range waiting {
		one <- reply{err: why}
	}
}

func (c *Client) send(frame []byte) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.conn.Write(frame)
	return err
}

// Close ends calls under way with Closed.
func (c *Client) Close() { c.end(&Error{Closed, "the client was closed"}) }

// Draining reports that the server asked for no more calls: connect to another one.
func (c *Client) Draining() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.draining
}

// Call calls the function `method` and puts its result into what `result` points to; nil drops it. The
// context's deadline goes with the call, and when the context ends, the server is told to stop.
func (c *Client) Call(ctx context.Context, method string, arguments []any, result any) error {
	body, err := Marshal(arguments)
	if err != nil {
		return &Error{BadArguments, method + ": " + err.Error()}
	}
	if uint64(len(body)) > math.MaxUint32 {
		return &Error{TooLarge, method + ": the arguments are larger than 4 GiB"}
	}
	if ctx.Err() != nil {
		return endOf(ctx)
	}
	waiting := make(chan reply, 1)
	c.mutex.Lock()
	if c.ended != nil {
		defer c.mutex.Unlock()
		return c.ended
	}
	c.next++
	id := c.next
	c.waiting[id] = waiting
	c.mutex.Unlock()
	h := header{kind: kindRequest, id: id, method: methodNumber(method), timeoutUs: microseconds(ctx), body: uint32(len(body))}
	if err := c.send(append(h.append(make([]byte, 0, headerBytes+len(body))), body...)); err != nil {
		c.end(&Error{ConnectionLost, "the connection to the server ended: " + err.Error()})
	}
	select {
	case got := <-waiting:
		if got.err != nil {
			return got.err
		}
		if result == nil {
			return nil
		}
		if err := Unmarshal(got.body, result); err != nil {
			return &Error{BadReply, method + ": " + err.Error()}
		}
		return nil
	case <-ctx.Done():
		c.mutex.Lock()
		delete(c.waiting, id)
		c.mutex.Unlock()
		c.send(header{kind: kindCancel, id: id}.append(nil))
		return endOf(ctx)
	}
}

func endOf(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{DeadlineExceeded, "the context's deadline passed"}
	}
	return &Error{Cancelled, "cancelled by the caller"}
}

// 0: for ever.
func microseconds(ctx context.Context) uint32 {
	deadline, has := ctx.Deadline()
	if !has {
		return 0
	}
	left := time.Until(deadline).Microseconds()
	if left < 1 {
		left = 1
	}
	if left > math.MaxUint32 {
		left = math.MaxUint32
	}
	return uint32(left)
}

func methodNumber(name string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return hash.Sum64()
}
