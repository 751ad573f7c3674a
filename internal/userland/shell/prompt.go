package shell

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
)

// expandPrompt expands the escapes of prompts, and then parameters and commands as within double quotes.
func expandPrompt(sh *shell, s string) string {
	sh.charge(20 + len(s))
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'D':
			if !strings.HasPrefix(s[i+1:], "{") {
				b.WriteString(`\D`)
				break
			}
			layout, _, closed := strings.Cut(s[i+2:], "}")
			i += 2 + len(layout)
			if !closed {
				i = len(s)
			}
			if layout == "" {
				layout = "%X"
			}
			b.WriteString(promptQuote(promptTime(sh, layout)))
		case '0', '1', '2', '3', '4', '5', '6', '7':
			end := i + 1
			for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(s[i:end], 8, 16)
			b.WriteByte(byte(n))
			i = end - 1
		default:
			b.WriteString(promptEscape(sh, c))
		}
	}
	if !sh.shopts["promptvars"] {
		return b.String()
	}
	parts := strings.Split(b.String(), "\r") // the parser drops it before a newline
	for i := range parts {
		parts[i] = sh.documentText(parts[i])
	}
	return strings.Join(parts, "\r")
}

// promptEscape returns what a letter behind a backslash stands for.
func promptEscape(sh *shell, c byte) string {
	switch c {
	case 'a':
		return "\a"
	case 'e':
		return "\x1b"
	case 'n':
		return "\n"
	case 'r':
		return "\r"
	case '$':
		return "#"
	case '\\':
		return `\`
	case '"':
		return `"`
	case '#':
		return "0"
	case '[', ']':
		return ""
	case 'u':
		return "root"
	case 'h', 'H':
		host := sh.str("HOSTNAME")
		if c == 'h' {
			host, _, _ = strings.Cut(host, ".")
		}
		return promptQuote(host)
	case 's':
		return promptQuote(lastElement(sh.name))
	case 'v':
		return "5.2"
	case 'V':
		return "5.2.15"
	case 'j':
		n := 0
		for _, p := range sh.jobs {
			if !p.done {
				n++
			}
		}
		return strconv.Itoa(n)
	case 'l':
		return "tty"
	case '!':
		return "1"
	case 'w', 'W':
		path := pwd(sh)
		home, ok := sh.get("HOME")
		if ok && home != "" && home != "/" && (path == home || strings.HasPrefix(path, home+"/")) {
			path = "~" + path[len(home):]
		}
		if c == 'W' && path != "/" {
			path = lastElement(path)
		}
		return promptQuote(path)
	}
	if layout := map[byte]string{'t': "%H:%M:%S", 'T': "%I:%M:%S", '@': "%I:%M %p", 'A': "%H:%M", 'd': "%a %b %d"}[c]; layout != "" {
		return promptTime(sh, layout)
	}
	return `\` + string(rune(c))
}

func promptTime(sh *shell, layout string) string {
	return program.Strftime(layout, sh.p.Now().In(zoneOf(sh)))
}

// promptQuote escapes what the expansion of a prompt would take for its own.
func promptQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, "$", `\$`, "`", "\\`").Replace(s)
}
