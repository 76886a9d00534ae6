package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/quic-go/qpack"
)

// Answers the commands of our example `qpack` (crates/h3/examples/qpack.rs) that need no dynamic table; it has no
// streams of instructions, and none may be sent to it.
func qpackEnds() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "encode":
			section := new(bytes.Buffer)
			encoder := qpack.NewEncoder(section)
			for _, word := range words[2:] {
				name, value, _ := strings.Cut(strings.TrimSuffix(word, "!"), ":")
				check(encoder.WriteField(qpack.HeaderField{Name: text(name), Value: text(value)}))
			}
			check(encoder.Close())
			fmt.Printf("section %x\n", section.Bytes())
		case "decode":
			fmt.Println(decoded([]byte(text(words[2]))))
		case "encoder-stream", "decoder-stream":
			if len(words) > 1 {
				fmt.Println("fault 0x201: there is no dynamic table")
			} else {
				fmt.Println("ok")
			}
		case "acknowledge":
			fmt.Println("instructions")
		default:
			fmt.Println("ok")
		}
	}
}

func decoded(section []byte) string {
	answer := "fields"
	next := qpack.NewDecoder().Decode(section)
	for {
		field, err := next()
		if err == io.EOF {
			return answer
		}
		if err != nil {
			return "fault 0x200: " + err.Error()
		}
		answer += fmt.Sprintf(" %x:%x", field.Name, field.Value)
	}
}

func text(digits string) string {
	octets, err := hex.DecodeString(digits)
	check(err)
	return string(octets)
}
