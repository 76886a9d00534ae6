// pion/sctp as a rival: what src/command.rs of the rivals in Rust says of the command line and the
// answer holds here too. In memory both ends share a process and a pair of channels.
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
	// What a receiver stays for what is still to be acknowledged.
	linger = 500 * time.Millisecond
)

// answer is one line of JSON.
func answer(messages, bytes int, cpu, wall time.Duration, memory float64) {
	fmt.Printf("{\"messages\": %d, \"bytes\": %d, \"cpu\": %.6f, \"wall\": %.6f, \"memory\": %.0f}\n",
		messages, bytes, cpu.Seconds(), wall.Seconds(), memory)
}

func processor() time.Duration {
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

// channels is one end of a connection in memory that carries packets.
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

// pair sets one association up in memory.
func pair(queue int) (client, server *sctp.Association, err error) {
	one, other := make(chan []byte, queue), make(chan []byte, queue)
	came := make(chan error, 1)
	go func() {
		var err error
		server, err = sctp.Server(config(&channels{in: one, out: other, closed: make(chan struct{})}))
		came <- err
	}()
	client, err = sctp.Client(config(&channels{in: other, out: one, closed: make(chan struct{})}))
	return client, server, errors.Join(err, <-came)
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

// receive takes that many messages; first is called when the first one is there.
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
			return fmt.Errorf("a message of %d bytes", length)
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
	cpu, wall := processor(), time.Now()
	sent := make(chan error, 1)
	go func() { sent <- send(client, size, count) }()
	if err := receive(server, size, count, func() {}); err != nil {
		return err
	}
	answer(count, count*size, processor()-cpu, time.Since(wall), 0)
	return <-sent
}

func associations(count int) error {
	type ends struct{ client, server *sctp.Association }
	all := make([]ends, count)
	before := resident()
	cpu, wall := processor(), time.Now()
	for index := range all {
		client, server, err := pair(16)
		if err != nil {
			return err
		}
		all[index] = ends{client, server}
	}
	cpu, took := processor()-cpu, time.Since(wall)
	for _, it := range all {
		if err := send(it.client, 64, 1); err != nil {
			return err
		}
		if err := receive(it.server, 64, 1, func() {}); err != nil {
			return err
		}
	}
	answer(count, 0, cpu, took, (resident()-before)/float64(count))
	runtime.KeepAlive(all)
	return nil
}

// answering learns from the first packet where the peer is.
type answering struct {
	*net.UDPConn
	peer *net.UDPAddr
}

func (a *answering) Read(buffer []byte) (int, error) {
	length, from, err := a.ReadFromUDP(buffer)
	if a.peer == nil {
		a.peer = from
	}
	return length, err
}

func (a *answering) Write(data []byte) (int, error) {
	return a.WriteToUDP(data, a.peer)
}

func sized(conn *net.UDPConn) error {
	return errors.Join(conn.SetReadBuffer(window), conn.SetWriteBuffer(window))
}

func serve(where string, size, count int) error {
	address, err := net.ResolveUDPAddr("udp", where)
	if err != nil {
		return err
	}
	conn, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	if err := sized(conn); err != nil {
		return err
	}
	fmt.Println("ready")
	association, err := sctp.Server(config(&answering{UDPConn: conn}))
	if err != nil {
		return err
	}
	cpu, wall := processor(), time.Now()
	first := func() { cpu, wall = processor(), time.Now() }
	if err := receive(association, size, count, first); err != nil {
		return err
	}
	answer(count, count*size, processor()-cpu, time.Since(wall), 0)
	time.Sleep(linger)
	return nil
}

func transmit(where string, size, count int) error {
	address, err := net.ResolveUDPAddr("udp", where)
	if err != nil {
		return err
	}
	conn, err := net.DialUDP("udp", nil, address)
	if err != nil {
		return err
	}
	if err := sized(conn); err != nil {
		return err
	}
	association, err := sctp.Client(config(conn))
	if err != nil {
		return err
	}
	cpu, wall := processor(), time.Now()
	if err := send(association, size, count); err != nil {
		return err
	}
	for association.BufferedAmount() > 0 {
		time.Sleep(2 * time.Millisecond)
	}
	answer(count, count*size, processor()-cpu, time.Since(wall), 0)
	return nil
}

func run(words []string) error {
	number := func(index int) int {
		value, err := strconv.Atoi(words[index])
		if err != nil || value <= 0 {
			fmt.Fprintln(os.Stderr, "pion: not a number:", words[index])
			os.Exit(2)
		}
		return value
	}
	messages := func(size, bytes int) int { return (bytes + size - 1) / size }
	switch {
	case len(words) == 3 && words[0] == "memory":
		return memory(number(1), messages(number(1), number(2)))
	case len(words) == 2 && words[0] == "associations":
		return associations(number(1))
	case len(words) == 4 && words[0] == "receive":
		return serve(words[1], number(2), messages(number(2), number(3)))
	case len(words) == 4 && words[0] == "send":
		return transmit(words[1], number(2), messages(number(2), number(3)))
	}
	return errors.New("memory SIZE BYTES | associations COUNT | receive or send ADDRESS SIZE BYTES")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pion:", err)
		os.Exit(1)
	}
}
