// Package proxy forwards what an agent in a sandbox sends to the hosts that it may reach, and refuses
// everything else. It takes CONNECT, for TLS, whose server name it checks, and plain HTTP.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/host"
	"agency/internal/socket"
)

// The limits of what an agent can ask of a proxy.
const (
	mostConnections = 256
	headerBytes     = 64 << 10
	headerTime      = 30 * time.Second // for the request, and for the first bytes in a tunnel
	dialTime        = 30 * time.Second
	idleTime        = 15 * time.Minute
	acceptPause     = 100 * time.Millisecond // between tries to accept a connection without open files or memory
)

// Proxy reaches hosts for one attempt.
type Proxy struct {
	changed func(news bool) // called when Use has changed

	slots socket.Slots
	plain *httputil.ReverseProxy

	mu     sync.Mutex
	hosts  []host.Host // replaced, never changed in place
	locals []host.Host // the hosts on this machine, which have listeners of their own
	use    agency.NetworkUse
}

// New returns a proxy that reaches the hosts of a list. It calls changed when Use has changed; news reports
// whether the proxy has refused a host for the first time, or is broken. The agent gets a refusal after
// changed has returned.
func New(hosts []string, changed func(news bool)) *Proxy {
	list := host.List(hosts)
	p := &Proxy{
		hosts: list, locals: host.Locals(list), changed: changed, slots: socket.NewSlots(mostConnections),
		use: agency.NetworkUse{Hosts: append([]string{}, hosts...), Granted: []agency.Grant{}, Refused: []agency.Refusal{}},
	}
	p.plain = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL, r.Out.Host = r.In.URL, r.In.URL.Host },
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
			Protocols:   onlyHTTP1(), DisableCompression: true, MaxResponseHeaderBytes: headerBytes, IdleConnTimeout: time.Minute, MaxIdleConns: 16,
		},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, err) },
	}
	return p
}

func onlyHTTP1() *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(true)
	return p
}

// Use returns what the proxy did so far.
func (p *Proxy) Use() agency.NetworkUse {
	p.mu.Lock()
	defer p.mu.Unlock()
	use := p.use
	use.Refused = append([]agency.Refusal{}, p.use.Refused...)
	return use
}

// Allow adds entries to the list of hosts.
func (p *Proxy) Allow(entries []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hosts := slices.Clone(p.use.Hosts)
	for _, entry := range entries {
		if !slices.Contains(hosts, entry) {
			hosts = append(hosts, entry)
		}
	}
	p.use.Hosts, p.hosts = hosts, host.List(hosts)
}

// Continue adds the hosts and the refusals of an earlier proxy of the same sandbox. Call it before Serve.
func (p *Proxy) Continue(before agency.NetworkUse) {
	p.Allow(before.Hosts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use.Refused = append(p.use.Refused, before.Refused...)
}

// list returns the hosts that the proxy reaches now.
func (p *Proxy) list() []host.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts
}

// Serve serves listeners that a sandbox opened, until they are closed: the first one is for the
// proxy's own protocol, and each other one leads to the local host in its place. When one of them
// fails, the agent's connections are refused, and Use has the problem.
func (p *Proxy) Serve(listeners []net.Listener) {
	var all sync.WaitGroup
	serve := func(do func() error) {
		all.Go(func() {
			if err := do(); err != nil && !errors.Is(err, net.ErrClosed) {
				p.Broken(fmt.Errorf("agency's proxy ended: %w", err))
			}
		})
	}
	for i, l := range listeners {
		l = p.slots.Listener(l)
		if i == 0 {
			server := &http.Server{
				Handler: http.HandlerFunc(p.handle), MaxHeaderBytes: headerBytes, ReadHeaderTimeout: headerTime, IdleTimeout: time.Minute,
				ErrorLog: log.New(io.Discard, "", 0),
			}
			serve(func() error { return server.Serve(l) })
		} else if i <= len(p.locals) {
			serve(func() error { return forward(l, p.locals[i-1]) })
		}
	}
	all.Wait()
}

// Broken records why the proxy does not work.
func (p *Proxy) Broken(err error) {
	p.mu.Lock()
	p.use.Problem = err.Error()
	p.mu.Unlock()
	p.changed(true)
}

// refused is the error for a host that the agent may not reach.
type refused struct{ address, reason, entry string }

func (r *refused) Error() string {
	text := fmt.Sprintf("agency: %s is refused: %s.", r.address, r.reason)
	if r.entry != "" {
		text += " The user can allow it: agency answer RUN once --host " + r.entry
	}
	return text
}

// refuse records a refusal and returns it as an error. entry is the entry of a list of hosts that would
// allow the host; empty when no entry would.
func (p *Proxy) refuse(address, entry, format string, args ...any) error {
	if hosts, err := host.Parse(entry); err != nil || hosts[0].Local() {
		entry = ""
	}
	r := &refused{address: shown(address), reason: fmt.Sprintf(format, args...), entry: entry}
	p.mu.Lock()
	known := false
	for i := range p.use.Refused {
		if p.use.Refused[i].Host == r.address {
			p.use.Refused[i].Count++
			known = true
		}
	}
	fresh := !known && len(p.use.Refused) < agency.MostRefusals
	if fresh {
		p.use.Refused = append(p.use.Refused, agency.Refusal{Host: r.address, Reason: r.reason, Entry: entry, At: time.Now().UTC(), Count: 1})
	}
	p.mu.Unlock()
	if fresh || known {
		p.changed(fresh)
	}
	return r
}

// shown returns a host, as the agent named it, in a form that can be recorded.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 260)]
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if _, ok := errors.AsType[*refused](err); ok {
		status = http.StatusForbidden
	}
	http.Error(w, err.Error(), status)
}

func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.plain.ServeHTTP(w, r)
	default:
		http.Error(w, "agency: this is a proxy: ask it for http://HOST/, or by CONNECT", http.StatusBadRequest)
	}
}

// split returns the name and the port of an address.
func split(address string) (name string, port int, err error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return strings.TrimSuffix(strings.ToLower(name), "."), int(n), err
}

// admit returns the host of the list to which an address belongs, or refuses the address.
func (p *Proxy) admit(address string) (h host.Host, name string, port int, err error) {
	if name, port, err = split(address); err != nil {
		return h, "", 0, p.refuse(address, "", "it is not an address")
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		name = addr.Unmap().String()
	}
	for _, h := range p.list() {
		if h.Reaches(name, port) {
			return h, name, port, nil
		}
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return h, name, port, p.refuse(address, withPort(name, port), "it is an address, not a name")
	}
	entry := name
	if port != 443 && port != 80 {
		entry = withPort(name, port)
	}
	return h, name, port, p.refuse(address, entry, "it is not on the list of hosts")
}

// withPort returns the entry of a list for one port of a host. Such a host may be in a private network.
func withPort(name string, port int) string { return net.JoinHostPort(name, strconv.Itoa(port)) }

// dial connects to an address that is on the list. It looks up the name once, and connects only to
// addresses that it has checked.
func (p *Proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	h, name, port, err := p.admit(address)
	if err != nil {
		return nil, err
	}
	addrs, err := lookUp(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("agency: look up %s: %w", name, err)
	}
	var last error
	for _, addr := range addrs {
		// Only a host that the user named with its port may be outside the public internet.
		if named := h.Port != 0 && !h.Below; !named && !public(addr) {
			last = p.refuse(address, withPort(name, port), "it stands for %s, which is not a public address", addr)
			continue
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", netip.AddrPortFrom(addr, uint16(port)).String())
		if err == nil {
			return conn, nil
		}
		last = fmt.Errorf("agency: connect to %s: %w", name, err)
	}
	return nil, last
}

// lookUp returns the addresses of a name. localhost and all names below it are this machine
// (RFC 6761).
func lookUp(ctx context.Context, name string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{addr}, nil
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	if err == nil && len(addrs) == 0 {
		err = errors.New("it has no address")
	}
	return addrs, err
}
