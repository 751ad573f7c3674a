//go:build !linux

package nano

// keepCode and shareCode do nothing: every worker has what was compiled for itself.
func keepCode(string, string) error { return nil }

func shareCode(string) error { return nil }
