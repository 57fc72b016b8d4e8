package tools

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"code.dny.dev/ssrf"
)

// Egress makes the HTTP clients that leave this process for an address which a tenant
// configured. The zero value uses the system's resolver and roots. It is safe for
// concurrent use.
type Egress struct {
	Resolver *net.Resolver  // nil: the system's
	Roots    *x509.CertPool // nil: the system's
}

const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxHeaderBytes   = 64 << 10
)

// Client gives a client for one request: it never sends it twice, follows no redirect,
// keeps no cookie and no connection, uses no proxy, and connects to public addresses
// and the networks of allow only, whatever a name resolves to. live, if not nil, is
// asked before every write; false lets nothing more out.
//
// The caller sets the time limit through the request's context.
func (e Egress) Client(allow []netip.Prefix, live func() bool) *http.Client {
	if live == nil {
		return e.client(allow, nil)
	}
	return e.client(allow, &fence{live: live})
}

// client is Client with a fence; nil: none.
func (e Egress) client(allow []netip.Prefix, f *fence) *http.Client {
	dialer := &net.Dialer{
		Timeout:  dialTimeout,
		Resolver: e.Resolver,
		Control:  guard(allow).Safe,
		// One connection, one request: probes would only keep a dead one.
		KeepAlive: -1,
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // HTTP/2 resends on a peer's reset, without any key
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: nil,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, addr)
				if err != nil || f == nil {
					return conn, err
				}
				return newFencedConn(conn, f), nil
			},
			Protocols:              protocols,
			DisableKeepAlives:      true, // a reused connection that broke is sent on again
			DisableCompression:     true, // bytes as they came; no decompression bombs
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSHandshakeTimeout:    handshakeTimeout,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.Roots},
		},
	}
}

// guard checks the address that is connected to. Ports are the operator's choice: the
// host and port of a URL are configuration, never an argument.
func guard(allow []netip.Prefix) *ssrf.Guardian {
	var v4, v6 []netip.Prefix
	for _, p := range allow {
		switch addr := p.Addr(); {
		case addr.Is4():
			v4 = append(v4, p)
		case addr.Is4In6() && p.Bits() >= 96:
			v4 = append(v4, netip.PrefixFrom(addr.Unmap(), p.Bits()-96))
		case !addr.Is4In6():
			v6 = append(v6, p)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...))
}

// fencedConn asks the fence before each write. Until something came back it also discards,
// when it is closed or its process dies, what the kernel has not delivered yet: bytes that
// wait for a broken network must not arrive minutes after the attempt was given up.
type fencedConn struct {
	net.Conn
	fence *fence
	live  func() bool
	once  sync.Once
}

func newFencedConn(conn net.Conn, f *fence) *fencedConn {
	linger(conn, 0)
	return &fencedConn{Conn: conn, fence: f, live: f.pass}
}

func (c *fencedConn) Write(b []byte) (int, error) {
	if !c.live() {
		return 0, errFenced
	}
	return c.Conn.Write(b)
}

func (c *fencedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.fence.sent() {
		c.once.Do(func() { linger(c.Conn, -1) }) // it was heard: an orderly end from here on
	}
	return n, err
}

// linger sets SO_LINGER where there is a TCP connection; elsewhere nothing waits in the kernel.
func linger(conn net.Conn, seconds int) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(seconds) // a hardening; the write fence does not depend on it
	}
}
