package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// offer is what the program says first.
type offer struct {
	Systems []offered `json:"systems"`
	Runtime string    `json:"runtime"`
}

type offered struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Language string   `json:"language"`
	What     string   `json:"what"`
	Rows     []string `json:"rows"`
}

// request asks for one repetition.
type request struct {
	System   string `json:"system"`
	Row      string `json:"row"`
	Messages uint64 `json:"messages"`
}

type figure struct {
	Value float64 `json:"value"`
}

type failure struct {
	Error string `json:"error"`
}

// serve says what is offered, then answers each line with one line until the input ends.
func (b *bench) serve(in io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(b.offer()); err != nil {
		return fmt.Errorf("writing what is offered: %w", err)
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := encoder.Encode(b.answer(lines.Bytes())); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

func (b *bench) offer() offer {
	all := offer{Runtime: runtime.Version()}
	for _, system := range b.systems {
		all.Systems = append(all.Systems, offered{system.name, system.version, "Go", system.what, system.rows()})
	}
	return all
}

func (b *bench) answer(line []byte) any {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return failure{fmt.Sprintf("not a request: %v; expected {\"system\": …, \"row\": …, \"messages\": …}", err)}
	}
	value, err := b.repeat(asked)
	if err != nil {
		return failure{err.Error()}
	}
	return figure{value}
}

// repeat runs what is asked for, once.
func (b *bench) repeat(asked request) (float64, error) {
	system, err := b.system(asked.System)
	if err != nil {
		return 0, err
	}
	row, err := system.row(asked.Row)
	if err != nil {
		return 0, err
	}
	if asked.Messages == 0 {
		return 0, fmt.Errorf("%s of %s: \"messages\" is missing or 0; ask for at least 1", row.name, system.name)
	}
	b.repetitions++
	return row.run(b, system, asked.Messages)
}

func (b *bench) system(name string) (*system, error) {
	var names []string
	for _, system := range b.systems {
		if system.name == name {
			return system, nil
		}
		names = append(names, system.name)
	}
	return nil, fmt.Errorf("no system %q here; there are %s", name, strings.Join(names, ", "))
}
