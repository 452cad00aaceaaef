package notify

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
)

// words returns what went wrong with a channel, as text for users. Other errors are returned as
// their own text.
func words(err error) string {
	if f, ours := errors.AsType[final](err); ours {
		return programWords(f.error) // without the library's wrapping
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		if name.IsNotFound {
			return fmt.Sprintf("the name %s is not known", name.Name)
		}
		return fmt.Sprintf("the name %s could not be looked up", name.Name)
	}
	if text := certificateWords(err); text != "" {
		return text
	}
	at := "the receiver"
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		at = op.Addr.String()
	}
	switch timeout := net.Error(nil); {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at " + at
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "there is no route to " + at
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return at + " closed the connection without an answer"
	case errors.As(err, &timeout) && timeout.Timeout():
		return at + " did not answer in time"
	case strings.Contains(err.Error(), "transport connection broken"): // the library gives it no type
		return at + " gave an answer that is not HTTP, or too large"
	}
	return programWords(err)
}

// certificateWords returns the problem with the certificate of a receiver; empty for other errors.
func certificateWords(err error) string {
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate of the receiver is not for %s", name.Host)
	}
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case unknown:
		return "the certificate of the receiver is not signed by an authority that this machine trusts"
	case invalid:
		return "the certificate of the receiver is not valid, or has expired"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the receiver does not speak https"
	}
	return ""
}

// programWords returns the problem with a program that a channel starts.
func programWords(err error) string {
	if missing, ok := errors.AsType[*exec.Error](err); ok {
		return fmt.Sprintf("there is no program %s on the PATH of the daemon", missing.Name)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok && path.Op == "fork/exec" {
		return fmt.Sprintf("%s cannot be started: %s", path.Path, path.Err)
	}
	return err.Error()
}
