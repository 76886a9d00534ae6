// pion/sctp. The arguments and the output are those of src/command.rs of the programs in Rust. In memory,
// both ends share a process and a pair of channels.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	packet = 1472
	window = 4 << 20
	// How long the receiver stays, so that it can acknowledge the last data.
	linger = 500 * time.Millisecond
)

// report prints one line of JSON.
func report(messages, bytes int, cpu, wall time.Duration, memory float64) {
	fmt.Printf("{\"messages\": %d, \"bytes\": %d, \"cpu\": %.6f, \"wall\": %.6f, \"memory\": %.0f}\n",
		messages, bytes, cpu.Seconds(), wall.Seconds(), memory)
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func resident() float64 {
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		panic(err)
	}
	var all, pages float64
	fmt.Sscan(string(text), &all, &pages)
	return pages * 4096
}

// channels is one end of a packet connection in memory.
type channels struct {
	net.Conn
	in, out chan []byte
	closed  chan struct{}
}

func (c *channels) Read(buffer []byte) (int, error) {
	select {
	case data := <-c.in:
		return copy(buffer, data), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *channels) Write(data []byte) (int, error) {
	select {
	case c.out <- append([]byte(nil), data...):
		return len(data), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *channels) Close() error {
	close(c.closed)
	return nil
}

func (c *channels) LocalAddr() net.Addr  { return &net.UDPAddr{} }
func (c *channels) RemoteAddr() net.Addr { return &net.UDPAddr{} }

func config(conn net.Conn) sctp.Config {
	return sctp.Config{
		LoggerFactory:        &logging.DefaultLoggerFactory{Writer: os.Stderr},
		NetConn:              conn,
		BlockWrite:           true,
		MTU:                  packet,
		MaxReceiveBufferSize: window,
	}
}

// pair opens an association in memory.
func pair(queue int) (client, server *sctp.Association, err error) {
	toServer, toClient := make(chan []byte, queue), make(chan []byte, queue)
	done := make(chan error, 1)
	go func() {
		var err error
		server, err = sctp.Server(config(&channels{in: toServer, out: toClient, closed: make(chan struct{})}))
		done <- err
	}()
	client, err = sctp.Client(config(&channels{in: toClient, out: toServer, closed: make(chan struct{})}))
	return client, server, errors.Join(err, <-done)
}

func send(association *sctp.Association, size, count int) error {
	stream, err := association.OpenStream(0, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		return err
	}
	message := make([]byte, size)
	for range count {
		if _, err := stream.WriteSCTP(message, sctp.PayloadTypeWebRTCBinary); err != nil {
			return err
		}
	}
	return nil
}

// receive receives that many messages, and calls first after the first one.
func receive(association *sctp.Association, size, count int, first func()) error {
	stream, err := association.AcceptStream()
	if err != nil {
		return err
	}
	buffer := make([]byte, size)
	for index := range count {
		length, err := stream.Read(buffer)
		if err != nil {
			return err
		}
		if length != size {
			return fmt.Errorf("unexpected message of %d bytes", length)
		}
		if index == 0 {
			first()
		}
	}
	return nil
}

func memory(size, count int) error {
	client, server, err := pair(8192)
	if err != nil {
		return err
	}
	cpu, wall := cpuTime(), time.Now()
	sent := make(chan error, 1)
	go func() { sent <- send(client, size, count) }()
	if err := receive(server, size, count, func() {}); err != nil {
		return err
	}
	report(count, count*size, cpuTime()-cpu, time.Since(wall), 0)
	return <-sent
}

func associations(count int) error {
	type ends struct{ client, server *sctp.Association }
	all := make([]ends, count)
	before := resident()
	cpu, wall := cpuTime(), time.Now()
	for index := range all {
		client, server, err := pair(16)
		if err != nil {
			return err
		}
		all[index] = ends{client, server}
	}
	cpu, took := cpuTime()-cpu, time.Since(wall)
	for _, it := range all {
		if err := send(it.client, 64, 1); err != nil {
			return err
		}
		if err := receive(it.server, 64, 1, func() {}); err != nil {
			return err
		}
	}
	report(count, 0, cpu, took, (resident()-before)/float64(count))
	runtime.KeepAlive(all)
	return nil
}

// serverConn takes the peer's address from the first packet.
type serverConn struct {
	*net.UDPConn
	peer *net.UDPAddr
}

func (a *serverConn) Read(buffer []byte) (int, error) {
	length, from, err := a.ReadFromUDP(buffer)
	if a.peer == nil {
		a.peer = from
	}
	return length, err
}

func (a *serverConn) Write(data []byte) (int, error) {
	return a.WriteToUDP(data, a.peer)
}

func setBuffers(conn *net.UDPConn) error {
	return errors.Join(conn.SetReadBuffer(window), conn.SetWriteBuffer(window))
}

func serve(addr string, size, count int) error {
	address, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	if err := setBuffers(conn); err != nil {
		return err
	}
	fmt.Println("ready")
	association, err := sctp.Server(config(&serverConn{UDPConn: conn}))
	if err != nil {
		return err
	}
	cpu, wall := cpuTime(), time.Now()
	first := func() { cpu, wall = cpuTime(), time.Now() }
	if err := receive(association, size, count, first); err != nil {
		return err
	}
	report(count, count*size, cpuTime()-cpu, time.Since(wall), 0)
	time.Sleep(linger)
	return nil
}

func transmit(addr string, size, count int) error {
	address, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return err
	}
	conn, err := net.DialUDP("udp", nil, address)
	if err != nil {
		return err
	}
	if err := setBuffers(conn); err != nil {
		return err
	}
	association, err := sctp.Client(config(conn))
	if err != nil {
		return err
	}
	cpu, wall := cpuTime(), time.Now()
	if err := send(association, size, count); err != nil {
		return err
	}
	for association.BufferedAmount() > 0 {
		time.Sleep(2 * time.Millisecond)
	}
	report(count, count*size, cpuTime()-cpu, time.Since(wall), 0)
	return nil
}

func run(args []string) error {
	number := func(index int) int {
		value, err := strconv.Atoi(args[index])
		if err != nil || value <= 0 {
			fmt.Fprintln(os.Stderr, "pion: not a positive number:", args[index])
			os.Exit(2)
		}
		return value
	}
	messages := func(size, bytes int) int { return (bytes + size - 1) / size }
	switch {
	case len(args) == 3 && args[0] == "memory":
		return memory(number(1), messages(number(1), number(2)))
	case len(args) == 2 && args[0] == "associations":
		return associations(number(1))
	case len(args) == 4 && args[0] == "receive":
		return serve(args[1], number(2), messages(number(2), number(3)))
	case len(args) == 4 && args[0] == "send":
		return transmit(args[1], number(2), messages(number(2), number(3)))
	}
	return errors.New("usage: memory SIZE BYTES | associations COUNT | receive or send ADDRESS SIZE BYTES")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pion:", err)
		os.Exit(1)
	}
}
