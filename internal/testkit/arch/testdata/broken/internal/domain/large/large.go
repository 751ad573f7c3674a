// Package large has types with many methods.
package large

// All does everything.
type All struct{ part }

// One does one thing.
func (All) One() {}

// Two does another.
func (*All) Two() {}

// Three does a third.
func (All) Three() {}

// Explained is as large, for a reason.
type Explained []All

// One does one thing.
func (Explained) One() {}

// Two does another.
func (Explained) Two() {}

// Three does a third.
func (Explained) Three() {}

// part has what All gets for nothing: its methods are not counted for All.
type part struct{}

func (part) four() {}

func (part) five() {}
