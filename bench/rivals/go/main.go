// Go's net/http and quic-go: every round has its own transport, and so a new connection and a new TLS
// session. Each line `MODE URL` is answered with milliseconds, or with `error` and the reason.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// The time limit of a round.
var limit = func() time.Duration {
	if seconds, err := strconv.Atoi(os.Getenv("ROUND_LIMIT")); err == nil {
		return time.Duration(seconds) * time.Second
	}
	return 20 * time.Second
}()

type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// transportFor returns a new transport for one version of HTTP.
func transportFor(mode string, roots *x509.CertPool) (transport, error) {
	config := &tls.Config{RootCAs: roots}
	switch mode {
	case "h1":
		protocols := new(http.Protocols)
		protocols.SetHTTP1(true)
		transport := &http.Transport{TLSClientConfig: config, Protocols: protocols}
		transport.Proxy = http.ProxyFromEnvironment
		return transport, nil
	case "h2":
		protocols := new(http.Protocols)
		protocols.SetHTTP2(true)
		return &http.Transport{TLSClientConfig: config, Protocols: protocols}, nil
	case "h3":
		return &http3.Transport{TLSClientConfig: config}, nil
	}
	return nil, fmt.Errorf("unknown mode %s", mode)
}

func round(mode, url string, roots *x509.CertPool) (time.Duration, error) {
	transport, err := transportFor(mode, roots)
	if err != nil {
		return 0, err
	}
	defer transport.CloseIdleConnections()
	if closer, ok := transport.(io.Closer); ok {
		defer closer.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: transport}
	started := time.Now()
	response, err := client.Do(request)
	elapsed := time.Since(started)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the status is %d", response.StatusCode)
	}
	_, err = io.Copy(io.Discard, response.Body)
	return elapsed, err
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 2 {
			fmt.Println("error a line is MODE URL")
			continue
		}
		elapsed, err := round(words[0], words[1], roots)
		if err != nil {
			fmt.Println("error", strings.Join(strings.Fields(err.Error()), " "))
			continue
		}
		fmt.Printf("%.4f\n", float64(elapsed)/float64(time.Millisecond))
	}
}
