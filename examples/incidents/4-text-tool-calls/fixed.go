package main

import "strings"

const (
	opener = "<tool>"
	closer = "</tool>"
)

// parser, mended: nothing leaves the buffer before the closing tag is whole.
type parser struct {
	buffer string
}

func (p *parser) feed(text string) {
	p.buffer += text
}

// end tells what was written between the tags, and whether there was a call.
func (p *parser) end() (string, bool) {
	_, rest, found := strings.Cut(p.buffer, opener)
	written, _, closed := strings.Cut(rest, closer)
	return strings.TrimSpace(written), found && closed
}
