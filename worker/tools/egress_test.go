package tools_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdpoint/holdpoint/approvals"
	"github.com/holdpoint/holdpoint/approvals/rules"
)

// closed takes the egress list from a tenant, as if the configuration had never had it.
func closed(tenant *rules.Tenant, allow ...string) *rules.Tenant {
	c := *tenant
	c.Egress = nil
	for _, p := range allow {
		c.Egress = append(c.Egress, netip.MustParsePrefix(p))
	}
	return &c
}

// The connected address is checked, whatever name led there: private and special networks
// are out of reach unless egress opens them.
func TestForbiddenAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"10.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254", "100.64.0.1", "192.0.0.192",
		"198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
		"::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2001:db8::1", "::127.0.0.1",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			run := executor()
			run.Egress.Resolver = resolver(t, func() netip.Addr { return netip.MustParseAddr(address) })
			out := run.Execute(t.Context(), call(closed(named(t, "tool.example", "9"))))
			wantClass(t, out, approvals.OutcomeUnsent)
			if out.Error != "not sent: the address is private or special, and egress.allow doesn't open it" {
				t.Errorf("error %q", out.Error)
			}
		})
	}
	t.Run("localhost", func(t *testing.T) {
		t.Parallel()
		far := receive(t, status(200, "{}"), nil)
		_, port, _ := net.SplitHostPort(far.Addr().String())
		wantClass(t, executor().Execute(t.Context(), call(closed(named(t, "localhost", port)))), approvals.OutcomeUnsent)
		if far.connections() != 0 {
			t.Error("a connection was made")
		}
	})
}

// named is a tenant whose tool lives on any host: parsed with a public name, which the
// configuration's own check of literal addresses lets pass, and led there by the resolver
// or, for a literal, by opening it for the parser only.
func named(t *testing.T, host, port string) *rules.Tenant {
	t.Helper()
	open := "192.0.2.1/32" // a name is judged when it is dialled
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		open = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()).String()
	}
	text := strings.NewReplacer("HOST", host, "PORT", port, "OPEN", open).Replace(`
egress: {allow: ["OPEN"]}
tenants:
  acme:
    slack: {team: T0ACME, channel: C0APPROVALS}
    admins: {users: [U0ROOT]}
    rules: [{name: all, when: "true", reviewers: {users: [U0ALICE]}, decide_within: 1h, execute_within: 1h}]
    tools: {deploy: {kind: effect, title: Deploy, http: {url: "http://HOST:PORT/x", timeout: 5s}}}
    agents: {agent: {tools: [deploy], versions: {v1: {states: [{format: none}], resume: pull}}}}
`)
	parsed, err := rules.Parse([]rules.File{{Name: "test.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Tenants["acme"]
}

// Egress opens what it names, in every spelling of an address, and nothing beside it.
func TestEgressOpens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		host  string
		allow []string
		want  approvals.OutcomeClass
	}{
		"loopback opened":           {"127.0.0.1", []string{"127.0.0.0/8"}, approvals.OutcomeSucceeded},
		"one address opened":        {"127.0.0.1", []string{"127.0.0.1/32"}, approvals.OutcomeSucceeded},
		"another network opened":    {"127.0.0.1", []string{"10.0.0.0/8", "::/0"}, approvals.OutcomeUnsent},
		"a mapped prefix":           {"127.0.0.1", []string{"::ffff:127.0.0.0/104"}, approvals.OutcomeSucceeded},
		"a mapped address":          {"[::ffff:127.0.0.1]", []string{"127.0.0.0/8"}, approvals.OutcomeSucceeded},
		"a mapped address, not v6":  {"[::ffff:127.0.0.1]", []string{"::1/128"}, approvals.OutcomeUnsent},
		"everything but this place": {"127.0.0.1", []string{"128.0.0.0/1"}, approvals.OutcomeUnsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far := receive(t, status(200, "{}"), nil)
			_, port, _ := net.SplitHostPort(far.Addr().String())
			out := executor().Execute(t.Context(), call(closed(named(t, c.host, port), c.allow...)))
			wantClass(t, out, c.want)
			if want := map[bool]int{true: 1}[c.want == approvals.OutcomeSucceeded]; far.connections() != want {
				t.Errorf("%d connections, want %d", far.connections(), want)
			}
		})
	}
}

// A name that was public when somebody looked, and is private when it is connected to,
// gains nothing: the address of the connection itself is judged.
func TestRebinding(t *testing.T) {
	t.Parallel()
	far := receive(t, status(200, "{}"), nil)
	_, port, _ := net.SplitHostPort(far.Addr().String())
	run := executor()
	var asked atomic.Int64
	run.Egress.Resolver = resolver(t, func() netip.Addr {
		if asked.Add(1) == 1 { // the operator, or an earlier check, looks
			return netip.MustParseAddr("93.184.216.34")
		}
		return netip.MustParseAddr("127.0.0.1")
	})
	if addrs, err := run.Egress.Resolver.LookupNetIP(t.Context(), "ip4", "rebind.example"); err != nil || addrs[0].IsLoopback() {
		t.Fatalf("%v %v: the first look should see a public address", addrs, err)
	}
	tenant := named(t, "rebind.example", port)
	out := run.Execute(t.Context(), call(closed(tenant)))
	wantClass(t, out, approvals.OutcomeUnsent)
	if far.connections() != 0 || asked.Load() < 2 {
		t.Errorf("%d connections after %d look-ups", far.connections(), asked.Load())
	}
	// The same name, where egress says that this network is meant.
	wantClass(t, run.Execute(t.Context(), call(closed(tenant, "127.0.0.0/8"))), approvals.OutcomeSucceeded)
}

// resolver answers every name with the address, as one A or AAAA record.
func resolver(t *testing.T, address func() netip.Addr) *net.Resolver {
	t.Helper()
	var lc net.ListenConfig
	server, err := lc.ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		query := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(dnsAnswer(query[:n], address), from)
		}
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// dnsAnswer is RFC 1035 at its shortest: the question back, and a record for its name.
func dnsAnswer(query []byte, address func() netip.Addr) []byte {
	const headerLen, typeA, typeAAAA = 12, 1, 28
	end := headerLen
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	var data []byte
	if kind == typeA || kind == typeAAAA {
		if addr := address(); addr.Is4() == (kind == typeA) {
			data = addr.AsSlice()
		}
	}
	answers := byte(min(len(data), 1))
	out := append(append([]byte{}, query[:2]...), 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0)
	out = append(out, query[headerLen:end+5]...)
	if answers == 1 {
		out = append(out, 0xc0, headerLen, 0, byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(data)))
		out = append(out, data...)
	}
	return out
}
