// A coding agent whose model writes its tool calls into the text: <tool>{...}</tool>.
// The parser is in broken.go or fixed.go: go run agent.go broken.go
// Reads what the user says from stdin, a line a message.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

const prompt = "You are a coding agent. To use a tool, write a call as JSON between tags:\n" +
	"<tool>{\"tool_name\": \"read_file\", \"arguments\": {\"path\": \"...\"}}</tool>\n" +
	"Write nothing after it; its result comes in the next message."

const maxTurns = 4

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type toolCall struct {
	ToolName  string            `json:"tool_name"`
	Arguments map[string]string `json:"arguments"`
}

type agent struct{ history []message }

// stream asks the model and hands each piece of its text to the parser.
func (a *agent) stream(p *parser) (string, error) {
	body, err := json.Marshal(map[string]any{"model": "code-model", "stream": true, "messages": a.history})
	if err != nil {
		return "", err
	}
	request, err := http.NewRequest("POST", os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer no-key")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	said := ""
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		data := strings.TrimPrefix(lines.Text(), "data: ")
		if data == lines.Text() || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct{ Content string }
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return said, err
		}
		said += chunk.Choices[0].Delta.Content
		p.feed(chunk.Choices[0].Delta.Content)
	}
	return said, lines.Err()
}

func run(written string) (string, error) {
	var call toolCall
	if err := json.Unmarshal([]byte(written), &call); err != nil {
		return "", fmt.Errorf("failed to parse tool call JSON: %w", err)
	}
	if call.ToolName != "read_file" || call.Arguments["path"] != "config.yaml" {
		return "", fmt.Errorf("%s: no such tool or file", call.ToolName)
	}
	return "name: orders\nport: 8081\n", nil
}

func (a *agent) answer(question string) error {
	a.history = append(a.history, message{"user", question})
	for turn := 0; turn < maxTurns; turn++ {
		p := &parser{}
		said, err := a.stream(p)
		if err != nil {
			return err
		}
		a.history = append(a.history, message{"assistant", said})
		written, found := p.end()
		if !found {
			fmt.Println("agent:", said)
			return nil
		}
		result, err := run(written)
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			result = "Error: " + err.Error()
		}
		a.history = append(a.history, message{"user", "Tool result:\n" + result})
	}
	return fmt.Errorf("no answer after %d turns", maxTurns)
}

func main() {
	a := &agent{history: []message{{"system", prompt}}}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := a.answer(lines.Text()); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
	}
}
