package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"agency"
)

// Webhook posts notices as JSON to a URL.
type Webhook struct {
	name   string
	url    string
	secret func() (string, error)
	now    func() time.Time
	client *http.Client
}

// NewWebhook returns a channel that posts to a URL. secret is called each time; nil leaves the
// requests unsigned. Unless private is set, addresses that are not public are refused, whatever
// name resolves to them.
func NewWebhook(name, url string, secret func() (string, error), private bool, now func() time.Time) *Webhook {
	dialer := &net.Dialer{}
	if !private {
		dialer.Control = refusePrivate
	}
	return &Webhook{name: name, url: url, secret: secret, now: now, client: &http.Client{
		// No proxy: it would be the only address that is checked.
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Name implements Channel.
func (w *Webhook) Name() string { return w.name }

// Send implements Channel. Any answer of the 2xx is a success.
func (w *Webhook) Send(ctx context.Context, n *agency.Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return final{err}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return final{errors.New("the url cannot be used")} // the error would quote the URL
	}
	stamp := strconv.FormatInt(w.now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "agency")
	request.Header.Set("X-Agency-Delivery", n.ID)
	request.Header.Set("X-Agency-Timestamp", stamp)
	if w.secret != nil {
		secret, err := w.secret()
		if err != nil {
			return err
		}
		request.Header.Set("X-Agency-Signature", "sha256="+sign(secret, stamp, body))
	}
	answer, err := w.client.Do(request)
	if err != nil {
		// The URL may hold a secret, so it stays out of every message.
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return err
	}
	_ = answer.Body.Close()
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return fmt.Errorf("the answer was %d, and redirects are not followed", answer.StatusCode)
	default:
		return fmt.Errorf("the answer was %d", answer.StatusCode)
	}
}

// sign returns the signature that a receiver computes with the same secret: of the time, a dot and
// the body.
func sign(secret, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(stamp + "."))
	_, _ = mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// refusePrivate is called with the address that a name resolved to, just before the connection.
func refusePrivate(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !public(to.Addr()) {
		return final{fmt.Errorf("%s is not an address of the internet, and allow_private is not set", address)}
	}
	return nil
}

// special are the blocks of global unicast that do not belong to one public host: networks of
// providers, for tests and for documentation, the reserved end, and the IPv6 addresses with an IPv4
// address in them.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("3fff::/20"),
}

// internet is the part of IPv6 that is allocated as public.
var internet = netip.MustParsePrefix("2000::/3")

// public reports whether an address belongs to a host on the internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !internet.Contains(a) {
		return false
	}
	for _, block := range special {
		if block.Contains(a) {
			return false
		}
	}
	return true
}
