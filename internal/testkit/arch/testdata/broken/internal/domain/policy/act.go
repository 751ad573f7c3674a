package policy

// Act says who does something, and under what.
type Act struct{ Who, Under string }

// Judge judges an act.
func Judge(a Act) bool { return a.Who != "" }
