package tools

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
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

// errFenced is a write that came after the lease; it is not sent.
var errFenced = errors.New("the lease may be over")

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
				if err != nil || live == nil {
					return conn, err
				}
				return &fencedConn{Conn: conn, live: live}, nil
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

// fencedConn asks for the lease before each write. A process that was stopped and
// continued has already lost its lease when its next write comes: the write is refused
// here, by the clock that went on, and not by a timer that may fire too late.
type fencedConn struct {
	net.Conn
	live func() bool
}

func (c *fencedConn) Write(b []byte) (int, error) {
	if !c.live() {
		return 0, errFenced
	}
	return c.Conn.Write(b)
}
