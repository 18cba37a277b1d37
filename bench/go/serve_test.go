package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// served is set where the test binary is to be the program itself.
const served = "GO_BENCH_SERVED"

func TestMain(m *testing.M) {
	if os.Getenv(served) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the program as a process of its own, as the comparison runs it.
type program struct {
	t     *testing.T
	in    *json.Encoder
	lines *bufio.Scanner
	offer offer
}

func start(t *testing.T) *program {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), served+"=1")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the program did not end with its input: %v", err)
		}
	})
	started := &program{t: t, in: json.NewEncoder(in), lines: bufio.NewScanner(out)}
	started.read(&started.offer)
	return started
}

func (p *program) read(into any) {
	p.t.Helper()
	if !p.lines.Scan() {
		p.t.Fatalf("the program says nothing more: %v", p.lines.Err())
	}
	if err := json.Unmarshal(p.lines.Bytes(), into); err != nil {
		p.t.Fatalf("not a line of the protocol: %s: %v", p.lines.Text(), err)
	}
}

func (p *program) ask(asked request) float64 {
	p.t.Helper()
	if err := p.in.Encode(asked); err != nil {
		p.t.Fatal(err)
	}
	var answer struct {
		Value *float64
		Error string
	}
	p.read(&answer)
	if answer.Value == nil {
		p.t.Fatalf("%s of %s: %s", asked.Row, asked.System, answer.Error)
	}
	return *answer.Value
}

// few are messages enough for a repetition of a row to have a figure.
func few(row string) uint64 {
	switch {
	case strings.HasPrefix(row, "A") && strings.HasSuffix(row, "ns"), strings.HasPrefix(row, "D"):
		return 5_000
	case row == "C":
		return 4_000
	default:
		return 200_000
	}
}

func TestEveryRowOfEverySystemHasAFigure(t *testing.T) {
	running := start(t)
	if len(running.offer.Systems) != len(systems()) {
		t.Fatalf("%d systems are offered, not %d", len(running.offer.Systems), len(systems()))
	}
	for _, system := range running.offer.Systems {
		if racesByItself(system.Name) {
			continue
		}
		for _, row := range system.Rows {
			if row == "E-full" {
				continue
			}
			if value := running.ask(request{system.Name, row, few(row)}); value <= 0 {
				t.Errorf("%s of %s: %v", row, system.Name, value)
			}
		}
	}
}

// racesByItself is whether the detector finds a race inside of a system, whatever is done with it: Ergo writes the state
// of a new process, and how long it has run, while others read them.
func racesByItself(system string) bool {
	return raced && system == "ergo"
}

func TestFullInboxesTakeAtLeastTheirPayload(t *testing.T) {
	if raced {
		t.Skip("the race detector has memory of its own")
	}
	for _, system := range systems() {
		if value := start(t).ask(request{system.name, "E-full", 256_000}); value < 1 || value > 5 {
			t.Errorf("%s: %v times the payload", system.name, value)
		}
	}
}

func TestWhatIsOfferedHasVersionsOfWhatItWasBuiltFrom(t *testing.T) {
	offered := start(t).offer
	if !strings.HasPrefix(offered.Runtime, "go1.") {
		t.Errorf("the runtime is %q", offered.Runtime)
	}
	modules, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, system := range offered.Systems[1:] {
		if !strings.Contains(string(modules), " v"+system.Version+"\n") {
			t.Errorf("%s is offered as %q, which go.mod does not know", system.Name, system.Version)
		}
	}
	if first := offered.Systems[0]; "go"+first.Version != offered.Runtime {
		t.Errorf("%s is offered as %q", first.Name, first.Version)
	}
}
