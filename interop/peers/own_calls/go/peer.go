// A program that makes its own system calls, as all Go programs do: an SCTP server or client with
// github.com/ishidawataru/sctp, or TCP only.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"sync"

	"github.com/ishidawataru/sctp"
)

const (
	messages = 20
	workers  = 4
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func address() *sctp.SCTPAddr {
	found, err := sctp.ResolveSCTPAddr("sctp", os.Args[2])
	check(err)
	return found
}

// Echoes messages until the peer ends the association.
func echo(conn *sctp.SCTPConn) {
	check(conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO))
	buffer := make([]byte, 4096)
	for {
		length, info, err := conn.SCTPRead(buffer)
		if err == io.EOF {
			break
		}
		check(err)
		_, err = conn.SCTPWrite(buffer[:length], &sctp.SndRcvInfo{Stream: info.Stream, PPID: info.PPID})
		check(err)
	}
	fmt.Println("EOF")
	check(conn.Close())
}

func server() {
	listener, err := sctp.ListenSCTP("sctp", address())
	check(err)
	fmt.Println("listening")
	var all sync.WaitGroup
	for range workers {
		conn, err := listener.AcceptSCTP()
		check(err)
		all.Add(1)
		go func() { defer all.Done(); echo(conn) }()
	}
	all.Wait()
	check(listener.Close())
}

func client() {
	var all sync.WaitGroup
	for worker := range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			conn, err := sctp.DialSCTPExt("sctp", nil, address(), sctp.InitMsg{NumOstreams: 10})
			check(err)
			check(conn.SubscribeEvents(sctp.SCTP_EVENT_DATA_IO))
			buffer := make([]byte, 4096)
			for index := range messages {
				sent := fmt.Sprintf("%d: message %d", worker, index)
				to := &sctp.SndRcvInfo{Stream: uint16(index % 10), PPID: uint32(index)}
				_, err = conn.SCTPWrite([]byte(sent), to)
				check(err)
				length, info, err := conn.SCTPRead(buffer)
				check(err)
				if string(buffer[:length]) != sent || info.Stream != to.Stream || info.PPID != to.PPID {
					log.Fatalf("%q on %d came back as %q on %d", sent, to.Stream, buffer[:length], info.Stream)
				}
			}
			check(conn.Close())
		}()
	}
	all.Wait()
	fmt.Println("echoed", workers*messages)
}

// Without any SCTP.
func tcp() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		conn, err := listener.Accept()
		check(err)
		_, err = io.Copy(conn, conn)
		check(err)
		check(conn.Close())
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	_, err = conn.Write([]byte("over TCP"))
	check(err)
	check(conn.(*net.TCPConn).CloseWrite())
	got, err := io.ReadAll(conn)
	check(err)
	fmt.Println(string(got))
}

func main() {
	switch os.Args[1] {
	case "server":
		server()
	case "client":
		client()
	case "tcp":
		tcp()
	}
}
