// Package disk is a driver.
package disk

import (
	"os"

	"example.org/peer"

	"broken/internal/domain/policy"
)

// Disk touches the world.
type Disk struct{ dir string }

// Write redeems first.
func (d *Disk) Write(p policy.Permit) error {
	name, err := p.Redeem()
	if err != nil {
		return err
	}
	done := make(chan error)
	go func() { done <- d.write(name) }()
	return <-done
}

// Passed leaves it to another.
func (d *Disk) Passed(p policy.Permit) error { return d.Write(p) }

// Checked has another redeem, and looks at the answer.
func (d *Disk) Checked(p policy.Permit) error {
	if err := check(p); err == nil {
		return d.write("x")
	}
	return nil
}

func check(p policy.Permit) error {
	_, err := p.Redeem()
	return err
}

func (d *Disk) write(name string) error { return os.WriteFile(name, nil, 0o600) }

// Early writes before it redeems.
func (d *Disk) Early(p policy.Permit) error {
	if err := d.write("x"); err != nil {
		return err
	}
	_, err := p.Redeem()
	return err
}

// Careless does not look at the answer.
func (d *Disk) Careless(p policy.Permit) error {
	_, _ = p.Redeem()
	return d.write("x")
}

// Wrong goes on when it was refused.
func (d *Disk) Wrong(p policy.Permit) error {
	if _, err := p.Redeem(); err != nil {
		return d.write("x")
	}
	return nil
}

// Remove takes no permit.
func (d *Disk) Remove(name string) error { return d.remove(name) }

func (d *Disk) remove(name string) error {
	f := os.Remove
	return f(name)
}

// Append stands on the list.
func (d *Disk) Append(line string) error { return d.write(line) }

// Sent reaches out through somebody else's code.
func Sent() error { return peer.Send("x") }

// Dir touches nothing.
func (d *Disk) Dir() string { return d.dir }

// Sink is an io.Writer that touches the world.
type Sink struct{ file *os.File }

// Write has the signature of an io.Writer.
func (s Sink) Write(b []byte) (int, error) { return s.file.Write(b) }

// Tried redeems as well.
func (d *Disk) Tried(p policy.Permit) error {
	name, back, err := p.Try()
	if err != nil {
		return err
	}
	defer back()
	return d.write(name)
}

// Untried does not look at the answer either.
func (d *Disk) Untried(p policy.Permit) error {
	name, _, _ := p.Try()
	return d.write(name)
}
