// An SCTP peer with pion/sctp, over UDP. The command line and the JSON line at the end are those of
// ../rfc6458/peer.c, as far as pion supports it: one address, only UDP, SCTP port 5000.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

const (
	buffer  = 4 << 20
	largest = 4 << 20
	// A private value: Wireshark would decode the payload of an assigned one.
	ppid = sctp.PayloadProtocolIdentifier(0x65796173)
	// How long the peer stays for the effects of the last step.
	linger = 300 * time.Millisecond
)

type peer struct {
	lock        sync.Mutex
	changed     *sync.Cond
	association *sctp.Association
	streams     map[uint16]*sctp.Stream
	echo        bool
	ended       bool
	next        uint32

	Messages   uint64   `json:"messages"`
	Bytes      uint64   `json:"bytes"`
	Bad        uint64   `json:"bad"`
	Disordered uint64   `json:"disordered"`
	Events     []string `json:"events"`
}

type options struct {
	listens, echo, interleave, zeroChecksum bool
	local, remote, udp                      string
}

func content(index uint32, at int) byte {
	return byte(int(index) + at*7 + at>>8)
}

func message(index uint32, size int) []byte {
	data := make([]byte, size)
	for at := range data {
		data[at] = content(index, at)
	}
	if size >= 4 {
		binary.BigEndian.PutUint32(data, index)
	}
	return data
}

func (p *peer) event(text string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Events = append(p.Events, text)
	p.changed.Broadcast()
}

// check checks a message; last is the number of the previous one on its stream.
func (p *peer) check(data []byte, last int64) int64 {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.Messages++
	p.Bytes += uint64(len(data))
	index, start := uint32(data[0]), 1
	if len(data) >= 4 {
		index, start = binary.BigEndian.Uint32(data), 4
		if int64(index) <= last {
			p.Disordered++
		}
		last = int64(index)
	}
	for at := start; at < len(data); at++ {
		if data[at] != content(index, at) {
			p.Bad++
			break
		}
	}
	p.changed.Broadcast()
	return last
}

func (p *peer) read(stream *sctp.Stream) {
	data := make([]byte, largest)
	last := int64(-1)
	for {
		length, ppid, err := stream.ReadSCTP(data)
		if err != nil {
			p.event(fmt.Sprintf("stream %d: %v", stream.StreamIdentifier(), err))
			return
		}
		last = p.check(data[:length], last)
		if p.echo {
			if _, err := stream.WriteSCTP(data[:length], ppid); err != nil {
				p.event("echo: " + err.Error())
				return
			}
		}
	}
}

func (p *peer) accept() {
	for {
		stream, err := p.association.AcceptStream()
		if err != nil {
			p.lock.Lock()
			p.ended = true
			p.lock.Unlock()
			p.event("ended: " + err.Error())
			return
		}
		p.lock.Lock()
		p.streams[stream.StreamIdentifier()] = stream
		p.lock.Unlock()
		go p.read(stream)
	}
}

func (p *peer) stream(id uint16) (*sctp.Stream, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if stream := p.streams[id]; stream != nil {
		return stream, nil
	}
	stream, err := p.association.OpenStream(id, ppid)
	if err != nil {
		return nil, err
	}
	p.streams[id] = stream
	go p.read(stream)
	return stream, nil
}

func (p *peer) waitUntil(condition func() bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	for !condition() && !p.ended {
		p.changed.Wait()
	}
}

func (p *peer) hasEnded() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.ended
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pion: not a number:", text)
		os.Exit(2)
	}
	return value
}

func (p *peer) send(words []string) error {
	count, across := number(words[0]), number(words[2])
	sizes := strings.Split(words[1], ",")
	for at := range count {
		stream, err := p.stream(uint16(p.next % uint32(across)))
		if err != nil {
			return err
		}
		if len(words) > 3 {
			name, value, _ := strings.Cut(words[3], "=")
			switch name {
			case "unordered":
				stream.SetReliabilityParams(true, sctp.ReliabilityTypeReliable, 0)
			case "lifetime":
				stream.SetReliabilityParams(false, sctp.ReliabilityTypeTimed, uint32(number(value)))
			case "retransmit":
				stream.SetReliabilityParams(false, sctp.ReliabilityTypeRexmit, uint32(number(value)))
			}
		}
		data := message(p.next, number(sizes[at%len(sizes)]))
		if _, err := stream.WriteSCTP(data, ppid); err != nil {
			return err
		}
		p.next++
	}
	return nil
}

func (p *peer) step(text string) error {
	words := strings.Split(text, ":")
	switch words[0] {
	case "send":
		return p.send(words[1:])
	case "receive":
		count := uint64(number(words[1]))
		p.waitUntil(func() bool { return p.Messages >= count })
	case "dry":
		for p.association.BufferedAmount() > 0 && !p.hasEnded() {
			time.Sleep(5 * time.Millisecond)
		}
	case "reset":
		for _, id := range strings.Split(words[1], ",") {
			stream, err := p.stream(uint16(number(id)))
			if err != nil {
				return err
			}
			if err := stream.Close(); err != nil {
				return err
			}
		}
	case "sleep":
		time.Sleep(time.Duration(number(words[1])) * time.Millisecond)
	case "shutdown":
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := p.association.Shutdown(limit); err != nil {
			return err
		}
		p.event("closed")
	case "abort":
		p.association.Abort("away")
		p.event("aborted")
	case "wait":
		p.waitUntil(func() bool { return false })
	default:
		return errors.New("unknown step: " + text)
	}
	return nil
}

// peerConn learns the peer's address from the first packet.
type peerConn struct {
	*net.UDPConn
	peer *net.UDPAddr
}

func (a *peerConn) Read(data []byte) (int, error) {
	length, from, err := a.ReadFromUDP(data)
	if a.peer == nil {
		a.peer = from
	}
	return length, err
}

func (a *peerConn) Write(data []byte) (int, error) {
	return a.WriteToUDP(data, a.peer)
}

func parse(words []string) (options, []string, error) {
	if len(words) == 0 {
		return options{}, nil, errors.New("peer connect|listen [OPTION]... STEP")
	}
	chosen := options{listens: words[0] == "listen"}
	for at := 1; at < len(words); at++ {
		switch words[at] {
		case "--echo":
			chosen.echo = true
		case "--interleave":
			chosen.interleave = true
		case "--zero-checksum":
			chosen.zeroChecksum = true
		case "--local", "--remote", "--udp", "--port", "--local-port", "--streams", "--stay":
			if at+1 == len(words) {
				return chosen, nil, errors.New("a value is missing for " + words[at])
			}
			switch words[at] {
			case "--local":
				chosen.local = words[at+1]
			case "--remote":
				chosen.remote = words[at+1]
			case "--udp":
				chosen.udp = words[at+1]
			}
			at++
		default:
			return chosen, words[at:], nil
		}
	}
	return chosen, nil, nil
}

func (o options) conn() (net.Conn, error) {
	ours, theirs, _ := strings.Cut(o.udp, ",")
	local := &net.UDPAddr{IP: net.ParseIP(o.local), Port: number(ours)}
	conn, err := net.ListenUDP("udp", local)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(conn.SetReadBuffer(buffer), conn.SetWriteBuffer(buffer)); err != nil {
		return nil, err
	}
	if o.listens {
		fmt.Println("ready")
		return &peerConn{UDPConn: conn}, nil
	}
	return &peerConn{conn, &net.UDPAddr{IP: net.ParseIP(o.remote), Port: number(theirs)}}, nil
}

func run() error {
	chosen, steps, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	conn, err := chosen.conn()
	if err != nil {
		return err
	}
	p := &peer{streams: map[uint16]*sctp.Stream{}, echo: chosen.echo, Events: []string{}}
	p.changed = sync.NewCond(&p.lock)
	settings := []sctp.AssociationOption{
		sctp.WithLoggerFactory(logging.NewDefaultLoggerFactory()),
		sctp.WithNetConn(conn), sctp.WithBlockWrite(true), sctp.WithMTU(1400),
		sctp.WithMaxReceiveBufferSize(buffer), sctp.WithMaxMessageSize(largest),
		sctp.WithEnableZeroChecksum(chosen.zeroChecksum),
		sctp.WithEnableInterleaving(chosen.interleave),
	}
	if chosen.listens {
		var all []sctp.ServerOption
		for _, it := range settings {
			all = append(all, it)
		}
		p.association, err = sctp.ServerWithOptions(all...)
	} else {
		var all []sctp.ClientOption
		for _, it := range settings {
			all = append(all, it)
		}
		p.association, err = sctp.ClientWithOptions(all...)
	}
	if err != nil {
		return err
	}
	p.event("up")
	go p.accept()
	for _, step := range steps {
		if err := p.step(step); err != nil {
			p.event(step + ": " + err.Error())
			break
		}
	}
	time.Sleep(linger)
	p.lock.Lock()
	defer p.lock.Unlock()
	return json.NewEncoder(os.Stdout).Encode(p)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pion:", err)
		os.Exit(1)
	}
}
