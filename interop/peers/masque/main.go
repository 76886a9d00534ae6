// A client and a proxy for UDP over HTTP/3 (RFC 9298) with masque-go, which supports only QUIC datagrams.
//
//	masque client HOST PORT TARGET CA NAME:PASSWORD
//	masque proxy HOST PORT CERTIFICATE KEY
//
// HOST is the name of the proxy, which listens on 127.0.0.1.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

const timeout = 10 * time.Second

// Lengths of the datagrams that are sent and echoed.
var lengths = []int{5, 0, 1000}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func template(host, port string) *uritemplate.Template {
	return uritemplate.MustNew("https://" + host + ":" + port + "/.well-known/masque/udp/{target_host}/{target_port}/")
}

func client(host, port, target, ca, user string) {
	pem, err := os.ReadFile(ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	request, err := masque.NewRequest(ctx, template(host, port), target)
	check(err)
	credentials := base64.StdEncoding.EncodeToString([]byte(user))
	request.Header().Set("Proxy-Authorization", "Basic "+credentials)
	transport := masque.Transport{
		TLSClientConfig: &tls.Config{ServerName: host, RootCAs: roots, NextProtos: []string{http3.NextProtoH3}},
		DialAddr: func(ctx context.Context, _ string, tls *tls.Config, quicConfig *quic.Config) (*quic.Conn, error) {
			return quic.DialAddr(ctx, "127.0.0.1:"+port, tls, quicConfig)
		},
	}
	conn, _, err := transport.Dial(request)
	check(err)
	for _, length := range lengths {
		sent := strings.Repeat("x", length)
		_, err = conn.WriteTo([]byte(sent), nil)
		check(err)
		check(conn.SetReadDeadline(time.Now().Add(timeout)))
		received := make([]byte, 2000)
		count, _, err := conn.ReadFrom(received)
		check(err)
		if string(received[:count]) != sent {
			log.Fatalf("%d bytes came back as %d others", length, count)
		}
		fmt.Println("back", count)
	}
	check(conn.Close())
}

func proxy(host, port, certificate, key string) {
	known := template(host, port)
	var proxy masque.Proxy
	serve := func(w http.ResponseWriter, r *http.Request) {
		request, err := masque.ParseProxyRequest(r, known)
		if err != nil {
			log.Println("refused:", err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Println("asked for", request.Target)
		if err := proxy.Proxy(w, request); err != nil {
			log.Println("ended:", err)
		}
	}
	server := http3.Server{
		Addr:            "127.0.0.1:" + port,
		Handler:         http.HandlerFunc(serve),
		EnableDatagrams: true,
		QUICConfig:      &quic.Config{EnableDatagrams: true},
	}
	fmt.Println("ready")
	check(server.ListenAndServeTLS(certificate, key))
}

func main() {
	log.SetFlags(0)
	args := os.Args[1:]
	switch {
	case len(args) == 6 && args[0] == "client":
		client(args[1], args[2], args[3], args[4], args[5])
	case len(args) == 5 && args[0] == "proxy":
		proxy(args[1], args[2], args[3], args[4])
	default:
		log.Fatal("masque client HOST PORT TARGET CA NAME:PASSWORD | masque proxy HOST PORT CERTIFICATE KEY")
	}
}
