package app

import "broken/internal/driver/disk/within"

// Reach imports what is for another driver alone.
func Reach() error { return within.Remove("x") }
