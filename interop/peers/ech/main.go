// A server over TCP (HTTP/2) and QUIC (HTTP/3) with Encrypted ClientHello, by Go's crypto/tls and quic-go.
//
//	ech ADDRESS CERTIFICATE KEY PUBLIC_NAME current|stale|off
//
// It prints the ECHConfigList that its clients have, in base64, and responds to each request with `NAME accepted` or
// `NAME clear`. With `current` it has the key of that list; with `stale` it has another one, which it sends to those
// that use the old one; with `off` it has none.
package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/quic-go/quic-go/http3"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// An ECHConfig (RFC 9849 §4) with a new key of X25519, HKDF-SHA256 and AES-128-GCM.
func newKey(id byte, publicName string) tls.EncryptedClientHelloKey {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	check(err)
	public := key.PublicKey().Bytes()
	contents := []byte{id, 0, 0x20, 0, byte(len(public))}
	contents = append(contents, public...)
	contents = append(contents, 0, 4, 0, 1, 0, 1, 0, byte(len(publicName)))
	contents = append(contents, publicName...)
	contents = append(contents, 0, 0)
	config := binary.BigEndian.AppendUint16([]byte{0xfe, 0x0d}, uint16(len(contents)))
	return tls.EncryptedClientHelloKey{
		Config: append(config, contents...), PrivateKey: key.Bytes(), SendAsRetry: true,
	}
}

func respond(writer http.ResponseWriter, request *http.Request) {
	outcome := "clear"
	if request.TLS.ECHAccepted {
		outcome = "accepted"
	}
	fmt.Fprintf(writer, "%s %s\n", request.TLS.ServerName, outcome)
}

func main() {
	if len(os.Args) != 6 {
		log.Fatal("usage: ech ADDRESS CERTIFICATE KEY PUBLIC_NAME current|stale|off")
	}
	address, publicName, state := os.Args[1], os.Args[4], os.Args[5]
	certificate, err := tls.LoadX509KeyPair(os.Args[2], os.Args[3])
	check(err)
	published := newKey(1, publicName)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	switch state {
	case "current":
		config.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{published}
	case "stale":
		config.EncryptedClientHelloKeys = []tls.EncryptedClientHelloKey{newKey(2, publicName)}
	}
	handler := http.HandlerFunc(respond)
	tcp, err := net.Listen("tcp", address)
	check(err)
	udp, err := net.ListenPacket("udp", address)
	check(err)
	over3 := &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(config.Clone())}
	go func() { check(over3.Serve(udp)) }()
	list := binary.BigEndian.AppendUint16(nil, uint16(len(published.Config)))
	fmt.Println(base64.StdEncoding.EncodeToString(append(list, published.Config...)))
	over2 := &http.Server{Handler: handler, TLSConfig: config}
	check(over2.ServeTLS(tcp, "", ""))
}
