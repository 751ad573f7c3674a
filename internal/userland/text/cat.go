package text

import (
	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
)

func cat(p *program.Process) int {
	opts, files := p.Options(1, "AbeEnstTuv", "show-all A", "number-nonblank b", "show-ends E", "number n", "squeeze-blank s", "show-tabs T",
		"show-nonprinting v")
	number, nonblank, ends, tabs, squeeze, visible := false, false, false, false, false, false
	for _, o := range opts {
		switch o.Name {
		case "A":
			visible, ends, tabs = true, true, true
		case "b":
			nonblank = true
		case "e":
			visible, ends = true, true
		case "E":
			ends = true
		case "n":
			number = true
		case "s":
			squeeze = true
		case "t":
			visible, tabs = true, true
		case "T":
			tabs = true
		case "v":
			visible = true
		}
	}
	if len(files) == 0 {
		files = []string{"-"}
	}
	status, line, begin, blank := 0, 0, true, 0
	out := p.Out()
	for _, name := range files {
		in := gnu.OpenOrTell(p, name)
		if in == nil {
			status = 1
			continue
		}
		for {
			chunk := in.Chunk()
			if chunk == nil {
				break
			}
			p.Charge(10 + len(chunk)/8)
			if !number && !nonblank && !ends && !tabs && !squeeze && !visible {
				_, _ = out.Write(chunk)
				continue
			}
			p.Charge(len(chunk))
			for _, c := range chunk {
				if begin && c == '\n' {
					if blank++; squeeze && blank > 1 {
						continue
					}
				} else {
					blank = 0
				}
				if begin && (nonblank && c != '\n' || number && !nonblank) {
					line++
					out.Printf("%6d\t", line)
				}
				begin = c == '\n'
				switch {
				case c == '\n':
					if ends {
						_ = out.WriteByte('$')
					}
					_ = out.WriteByte(c)
				case c == '\t':
					if tabs {
						_, _ = out.WriteString("^I")
					} else {
						_ = out.WriteByte(c)
					}
				case visible:
					_, _ = out.WriteString(caret(c))
				default:
					_ = out.WriteByte(c)
				}
			}
		}
		if !gnu.EndedWell(p, name, in) {
			status = 1
		}
	}
	return status
}

// caret writes a byte so that it can be seen.
func caret(c byte) string {
	prefix := ""
	if c >= 128 {
		prefix, c = "M-", c-128
	}
	switch {
	case c < 32:
		return prefix + "^" + string(rune(c+64))
	case c == 127:
		return prefix + "^?"
	}
	return prefix + string(rune(c))
}
