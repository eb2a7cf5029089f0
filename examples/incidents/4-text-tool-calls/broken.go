package main

import "strings"

const (
	opener = "<tool>"
	closer = "</tool>"
)

// parser as it went wrong: what is inside a call is flushed with every piece that arrives, before
// the closing tag is there. A piece of the tag at the end is cut off, so that it does not get into
// the JSON; the rest of the tag, which comes later, does.
type parser struct {
	buffer string
	inTool bool
	closed bool
	tool   strings.Builder
}

func (p *parser) feed(text string) {
	p.buffer += text
	if !p.inTool {
		at := strings.Index(p.buffer, opener)
		if at < 0 {
			return
		}
		p.inTool, p.buffer = true, p.buffer[at+len(opener):]
	}
	if at := strings.Index(p.buffer, closer); at >= 0 && !p.closed {
		p.tool.WriteString(p.buffer[:at])
		p.closed, p.buffer = true, ""
		return
	}
	p.flush()
}

func (p *parser) flush() {
	if p.closed {
		return
	}
	for length := len(closer) - 1; length > 0; length-- {
		if strings.HasSuffix(p.buffer, closer[:length]) {
			p.buffer = strings.TrimSuffix(p.buffer, closer[:length])
			break
		}
	}
	p.tool.WriteString(p.buffer)
	p.buffer = ""
}

// end tells what was written between the tags, and whether there was a call.
func (p *parser) end() (string, bool) {
	return p.tool.String(), p.inTool
}
