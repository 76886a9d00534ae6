// A client and a server over HTTP/3 with quic-go, and its QPACK, which has no dynamic table.
//
//	quic-go server ADDRESS CERTIFICATE KEY
//	quic-go client BASE CA PATH...
//	quic-go qpack CAPACITY BLOCKED
//
// The client prints a line for each path: `PATH STATUS LENGTH`, then `interim=103`, `trailer=VALUE` and `echoed` where
// they apply. `/echo/N` uploads N bytes with a trailer and compares what comes back; `N*PATH` makes N requests at once.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const timeout = 60 * time.Second

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A content that shows lost and exchanged parts.
func content(length int) []byte {
	octets := make([]byte, length)
	for i := range octets {
		octets[i] = byte(i*7 + i/256)
	}
	return octets
}

func client(base, ca string, paths []string) {
	pem, err := os.ReadFile(ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	transport := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	for _, path := range paths {
		count := 1
		if times, rest, found := strings.Cut(path, "*"); found {
			count, err = strconv.Atoi(times)
			check(err)
			path = rest
		}
		var all sync.WaitGroup
		for range count {
			all.Go(func() { fmt.Println(fetch(transport, base, path)) })
		}
		all.Wait()
	}
	check(transport.Close())
}

func fetch(transport http.RoundTripper, base, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var notes []string
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		notes = append(notes, fmt.Sprintf("interim=%d%s", code, header.Get("Link")))
		return nil
	}}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, base+path, nil)
	check(err)
	var upload []byte
	if length, found := strings.CutPrefix(path, "/echo/"); found {
		count, err := strconv.Atoi(length)
		check(err)
		upload = content(count)
		request.Method, request.URL.Path = http.MethodPost, "/echo"
		request.Body = io.NopCloser(bytes.NewReader(upload))
		request.Trailer = http.Header{"X-Sum": {"sent"}}
	}
	for i := range 16 {
		request.Header.Set(fmt.Sprintf("x-field-%d", i), strings.Repeat("value", i))
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return path + " " + err.Error()
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return path + " " + err.Error()
	}
	if upload != nil && bytes.Equal(body, upload) {
		notes = append(notes, "echoed")
	}
	for _, values := range response.Trailer {
		notes = append(notes, "trailer="+strings.Join(values, ","))
	}
	return strings.Join(append([]string{path, strconv.Itoa(response.StatusCode), strconv.Itoa(len(body))}, notes...), " ")
}

func site(shutDown func()) http.Handler {
	routes := http.NewServeMux()
	routes.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		for i := range 16 {
			w.Header().Set(fmt.Sprintf("x-field-%d", i), strings.Repeat("value", i))
		}
		fmt.Fprintf(w, "quic-go %s %s %s\n", r.Proto, r.Method, r.Host)
	})
	routes.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		fmt.Fprintln(w, "after a hint")
	})
	routes.HandleFunc("/trailers", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "before a trailer")
		w.Header().Set(http.TrailerPrefix+"X-Sum", "received")
	})
	routes.HandleFunc("/bytes/{count}", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.PathValue("count"))
		if err == nil {
			_, _ = w.Write(content(count))
		}
	})
	routes.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
		w.Header().Set(http.TrailerPrefix+"X-Sum", r.Trailer.Get("X-Sum"))
	})
	// The GOAWAY precedes the content.
	routes.HandleFunc("/away", func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		shutDown()
		time.Sleep(500 * time.Millisecond)
		fmt.Fprintln(w, "after a GOAWAY")
	})
	return routes
}

// Serves, and goes on with another server on the same socket when one is asked to shut down.
func serve(address, certificate, key string) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go func() {
		<-ended
		os.Exit(0)
	}()
	pair, err := tls.LoadX509KeyPair(certificate, key)
	check(err)
	config := http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}})
	listener, err := quic.ListenAddrEarly(address, config, &quic.Config{})
	check(err)
	fmt.Println("ready")
	for {
		server := new(http3.Server)
		var once sync.Once
		server.Handler = site(func() {
			once.Do(func() {
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
					defer cancel()
					_ = server.Shutdown(ctx)
				}()
			})
		})
		if err := server.ServeListener(listener); err != http.ErrServerClosed {
			check(err)
		}
	}
}

func main() {
	log.SetFlags(0)
	args := os.Args[1:]
	switch {
	case len(args) >= 4 && args[0] == "client":
		client(args[1], args[2], args[3:])
	case len(args) == 4 && args[0] == "server":
		serve(args[1], args[2], args[3])
	case len(args) == 3 && args[0] == "qpack":
		qpackEnds()
	default:
		log.Fatal("quic-go server ADDRESS CERTIFICATE KEY | client BASE CA PATH... | qpack CAPACITY BLOCKED")
	}
}
