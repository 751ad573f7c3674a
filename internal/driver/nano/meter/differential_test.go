package meter

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var arguments = []uint64{41, 1 << 40, 0x3ff8000000000000}

// TestMeteringChangesNothing runs random modules plain and metered, on both engines: they return the same, trap the same and leave the
// same memory.
func TestMeteringChangesNothing(t *testing.T) {
	const modules = 1000
	var hosts []*host
	for _, e := range engines {
		hosts = append(hosts, newHost(t, e.config()))
	}
	traps, gas := map[string]int{}, int64(0)
	for seed := range uint64(modules) {
		plain := generate(seed, true)
		with := instrument(t, plain)
		want := hosts[0].call(t, plain, 0, "run", arguments...)
		traps[want.Trap]++
		var first outcome
		for i, h := range hosts {
			got := h.call(t, with, 1<<40, "run", arguments...)
			if i == 0 {
				first = got
			} else if got.Gas != first.Gas {
				t.Errorf("seed %d: the %s took %d gas, and the %s %d", seed, engines[i].name, got.Gas, engines[0].name, first.Gas)
			}
			gas += got.Gas
			if h.overshoot > MaxOvershoot {
				t.Errorf("seed %d: %d below zero", seed, h.overshoot)
			}
			got.Gas = 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d on the %s: -plain +metered\n%s", seed, engines[i].name, diff)
			}
		}
	}
	t.Logf("%d gas, and of %d modules ended %v", gas, modules, traps)
	if traps[""] < modules/4 || len(traps) < 5 {
		t.Errorf("the modules show little: %v", traps)
	}
}

// TestEnginesAgree runs random modules whose floats are as the machine makes them: metered, both engines come to the same.
func TestEnginesAgree(t *testing.T) {
	var hosts []*host
	for _, e := range engines {
		hosts = append(hosts, newHost(t, e.config()))
	}
	for seed := range uint64(400) {
		with := instrument(t, generate(seed, false))
		want := hosts[0].call(t, with, 1<<40, "run", arguments...)
		if diff := cmp.Diff(want, hosts[1].call(t, with, 1<<40, "run", arguments...)); diff != "" {
			t.Fatalf("seed %d: -%s +%s\n%s", seed, engines[0].name, engines[1].name, diff)
		}
		// With less gas they stop at the same place.
		want = hosts[0].call(t, with, want.Gas/2, "run", arguments...)
		if diff := cmp.Diff(want, hosts[1].call(t, with, hosts[0].budget, "run", arguments...)); diff != "" {
			t.Fatalf("seed %d with %d gas: -%s +%s\n%s", seed, hosts[0].budget, engines[0].name, engines[1].name, diff)
		}
	}
}

// TestMeteredModulesAreValid asks wabt.
func TestMeteredModulesAreValid(t *testing.T) {
	validator := tool(t, "wasm-validate")
	for seed := range uint64(150) {
		plain := generate(seed, seed%2 == 0)
		path := filepath.Join(t.TempDir(), strconv.FormatUint(seed, 10))
		for _, o := range []Options{{}, {Detach: true}} {
			m, err := Instrument(plain, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, m.Wasm, 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := exec.Command(validator, "--enable-tail-call", path).CombinedOutput(); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, said)
			}
		}
	}
}
