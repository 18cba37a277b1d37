package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// answers are what a bench with these systems answers to each line.
func answers(t *testing.T, systems []*system, lines ...string) []map[string]any {
	t.Helper()
	var out strings.Builder
	asked := &bench{systems: systems, calibration: calibration{1}, lostAfter: 50 * time.Millisecond}
	if err := asked.serve(strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(said) != 1+len(lines) {
		t.Fatalf("%d lines for what is offered and %d requests", len(said), len(lines))
	}
	decoded := make([]map[string]any, len(lines))
	for index, line := range said[1:] {
		if err := json.Unmarshal([]byte(line), &decoded[index]); err != nil {
			t.Fatal(err)
		}
	}
	return decoded
}

func TestABadRequestIsAnErrorThatSaysWhatToAskFor(t *testing.T) {
	cases := []struct{ line, says string }{
		{`no JSON`, "not a request"},
		{`{"system": "go channels", "row": "A4", "messages": -1}`, "not a request"},
		{`{"system": "akka", "row": "A4", "messages": 1}`, `no system "akka" here; there are go channels, hollywood, ergo, gopipe 1 pool, gopipe 2 pools`},
		{`{"system": "hollywood", "row": "Z", "messages": 1}`, `hollywood does not offer the row "Z"`},
		{`{"system": "hollywood", "row": "A4"}`, `"messages" is missing or 0`},
	}
	for _, bad := range cases {
		answered := answers(t, systems(), bad.line, `{"system": "go channels", "row": "A4", "messages": 10}`)
		if said, _ := answered[0]["error"].(string); !strings.Contains(said, bad.says) {
			t.Errorf("%s: %v", bad.line, answered[0])
		}
		if _, ok := answered[1]["value"]; !ok {
			t.Errorf("after %s: %v", bad.line, answered[1])
		}
	}
}

func TestEmptyLinesAreNoRequests(t *testing.T) {
	var out strings.Builder
	if err := newBench(systems()).serve(strings.NewReader("\n \n"), &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 1 {
		t.Errorf("%d lines", lines)
	}
}

func TestASystemOffersOnlyRowsThatItCanDo(t *testing.T) {
	of := map[string]string{}
	for _, system := range systems() {
		of[system.name] = strings.Join(system.rows(), " ")
	}
	unkeyed := "A4 A4-75ns A4-460ns A4-2400ns A256 A256-75ns A256-460ns A256-2400ns "
	keyed := "B-uniform B-zipf C "
	expected := map[string]string{
		"go channels":    unkeyed + keyed + "D1 D64 E-full",
		"hollywood":      unkeyed + keyed + "D1 D64 E-full",
		"ergo":           unkeyed + keyed + "D1 D64 E-full",
		"gopipe 1 pool":  unkeyed + "E-full",
		"gopipe 2 pools": unkeyed + "E-full",
	}
	for name, rows := range expected {
		if of[name] != rows {
			t.Errorf("%s offers %s", name, of[name])
		}
	}
}

func TestMemoryIsNotMeasuredInAProgramThatHasRunAnotherRow(t *testing.T) {
	answered := answers(t, systems(), `{"system": "go channels", "row": "A4", "messages": 10}`,
		`{"system": "go channels", "row": "E-full", "messages": 256000}`)
	if said, _ := answered[1]["error"].(string); !strings.Contains(said, "start the program anew") {
		t.Errorf("%v", answered[1])
	}
}
