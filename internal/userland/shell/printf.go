package shell

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/userland/program"
)

// format is one run of printf.
type format struct {
	out    strings.Builder
	args   []string
	status int
	stop   bool
	gnu    bool // the command, not the builtin
	now    func() time.Time
	start  time.Time
	zone   func() *time.Location
	warn   func(text string)
	grow   func(n int)
}

func (f *format) next() (string, bool) {
	if len(f.args) == 0 {
		return "", false
	}
	a := f.args[0]
	f.args = f.args[1:]
	return a, true
}

// run formats all arguments, using the format again as long as there are some.
func (f *format) run(spec string) {
	for {
		before := len(f.args)
		f.once(spec)
		if f.stop || len(f.args) == 0 || len(f.args) == before {
			return
		}
		f.grow(f.out.Len())
	}
}

func (f *format) once(spec string) {
	for i := 0; i < len(spec); i++ {
		switch c := spec[i]; {
		case c == '\\':
			end := i + 2
			if end <= len(spec) {
				switch spec[i+1] {
				case 'x':
					for end < len(spec) && end < i+4 && hexDigit(spec[end]) >= 0 {
						end++
					}
				case 'u', 'U':
					limit := 6
					if spec[i+1] == 'U' {
						limit = 10
					}
					for end < len(spec) && end < i+limit && hexDigit(spec[end]) >= 0 {
						end++
					}
				case '0', '1', '2', '3', '4', '5', '6', '7':
					for end < len(spec) && end < i+4 && spec[end] >= '0' && spec[end] <= '7' {
						end++
					}
				case 'c':
					f.stop = true
					return
				}
			}
			end = min(end, len(spec))
			s, _ := unescape(spec[i:end], 'f')
			f.out.WriteString(s)
			i = end - 1
		case c != '%':
			f.out.WriteByte(c)
		case i+1 < len(spec) && spec[i+1] == '%':
			f.out.WriteByte('%')
			i++
		default:
			n := f.directive(spec[i:])
			if n < 0 {
				f.stop = true
				return
			}
			i += n - 1
		}
		if f.stop {
			return
		}
	}
}

// directive does one conversion and returns how long it is, -1 where it is none.
//
//nolint:cyclop // one case for each conversion
func (f *format) directive(spec string) int {
	i := 1
	flags := ""
	for i < len(spec) && strings.IndexByte("-+ #0'", spec[i]) >= 0 {
		flags += spec[i : i+1]
		i++
	}
	number := func() (int, bool) {
		if i < len(spec) && spec[i] == '*' {
			i++
			a, _ := f.next()
			n, _ := strconv.Atoi(a)
			return n, true
		}
		begin := i
		for i < len(spec) && spec[i] >= '0' && spec[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(spec[begin:i])
		return n, err == nil
	}
	width, _ := number()
	if width > math.MaxInt32 || width < -math.MaxInt32 {
		f.warn("invalid field width: ‘" + strconv.Itoa(width) + "’")
		f.status, f.stop = 1, true
		return -1
	}
	if width < 0 {
		flags += "-"
		width = -width
	}
	precision := -1
	if i < len(spec) && spec[i] == '.' {
		i++
		if precision, _ = number(); precision > math.MaxInt32 {
			f.warn("invalid precision: ‘" + strconv.Itoa(precision) + "’")
			f.status, f.stop = 1, true
			return -1
		}
	}
	for i < len(spec) && strings.IndexByte("hlLjzt", spec[i]) >= 0 {
		i++
	}
	width, precision = min(width, 1<<24), min(precision, 1<<24)
	f.grow(width + max(precision, 0))
	if i >= len(spec) {
		f.warn("`" + spec + "': missing format character")
		f.status = 1
		return -1
	}
	c := spec[i]
	i++
	left := strings.Contains(flags, "-")
	zero := strings.Contains(flags, "0") && !left
	emit := func(s string, zeros bool) { f.emit(s, width, left, zeros) }
	cut := func(s string) string {
		if precision >= 0 && precision < len(s) {
			return s[:precision]
		}
		return s
	}
	switch c {
	case 's':
		a, _ := f.next()
		emit(cut(a), false)
	case 'b':
		a, _ := f.next()
		s, stop := unescape(a, 'b')
		emit(cut(s), false)
		f.stop = f.stop || stop
	case 'q', 'Q':
		a, _ := f.next()
		if f.gnu {
			emit(quoteBackslashGNU(a), false)
		} else {
			emit(quoteBackslash(a), false)
		}
	case 'c':
		a, _ := f.next()
		if a != "" {
			a = a[:1]
		} else {
			a = "\x00"
		}
		emit(a, false)
	case 'd', 'i':
		s := signed(f.integer(), precision, flags)
		emit(s, zero && precision < 0)
	case 'u', 'o', 'x', 'X':
		s := unsigned(uint64(f.integer()), c, precision, flags)
		emit(s, zero && precision < 0)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		x := f.float()
		emit(formatFloat(x, c, flags, precision), zero && !math.IsInf(x, 0) && !math.IsNaN(x))
	case '(':
		end := strings.IndexByte(spec[i:], ')')
		if end < 0 || i+end+1 >= len(spec) || spec[i+end+1] != 'T' {
			f.warn("`(': invalid format character")
			f.status = 1
			return -1
		}
		layout := spec[i : i+end]
		i += end + 2
		at := f.moment()
		if layout == "" {
			layout = "%X"
		}
		emit(program.Strftime(layout, at.In(f.zone())), false)
	default:
		if f.gnu {
			f.warn(spec[:i] + ": invalid conversion specification")
		} else {
			f.warn("`" + spec[i-1:i] + "': invalid format character")
		}
		f.status = 1
		return -1
	}
	return i
}

// emit writes a text in a field of a width, left or right in it.
func (f *format) emit(s string, width int, left, zeros bool) {
	fill := width - len(s) // bash counts bytes
	if fill <= 0 {
		f.out.WriteString(s)
		return
	}
	switch {
	case left:
		f.out.WriteString(s + strings.Repeat(" ", fill))
	case zeros:
		sign := 0
		if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
			sign = 1
		}
		if strings.HasPrefix(s[sign:], "0x") || strings.HasPrefix(s[sign:], "0X") {
			sign += 2
		}
		f.out.WriteString(s[:sign] + strings.Repeat("0", fill) + s[sign:])
	default:
		f.out.WriteString(strings.Repeat(" ", fill) + s)
	}
}

// signed writes a whole number with a sign, as %d does.
func signed(n int64, precision int, flags string) string {
	s := strconv.FormatInt(n, 10)
	if n < 0 {
		s = s[1:]
	}
	if precision >= 0 && len(s) < precision {
		s = strings.Repeat("0", precision-len(s)) + s
	}
	if precision == 0 && n == 0 {
		s = ""
	}
	if strings.Contains(flags, "'") {
		s = grouped(s)
	}
	switch {
	case n < 0:
		s = "-" + s
	case strings.Contains(flags, "+"):
		s = "+" + s
	case strings.Contains(flags, " "):
		s = " " + s
	}
	return s
}

// unsigned writes a whole number without a sign, as %u, %o, %x and %X do.
func unsigned(n uint64, c byte, precision int, flags string) string {
	base := map[byte]int{'u': 10, 'o': 8, 'x': 16, 'X': 16}[c]
	s := strconv.FormatUint(n, base)
	if precision >= 0 && len(s) < precision {
		s = strings.Repeat("0", precision-len(s)) + s
	}
	if precision == 0 && n == 0 {
		s = ""
	}
	if strings.Contains(flags, "#") && n != 0 {
		switch c {
		case 'o':
			if s[0] != '0' {
				s = "0" + s
			}
		case 'x', 'X':
			s = "0x" + s
		}
	}
	if c == 'X' {
		s = strings.ToUpper(s)
	}
	return s
}

// moment returns the time that the next argument of %(...)T names.
func (f *format) moment() time.Time {
	at := f.now()
	if a, ok := f.next(); ok {
		n, err := strconv.ParseInt(a, 10, 64)
		switch {
		case err != nil:
			f.warn(a + ": invalid number")
			f.status = 1
		case n == -2:
			at = f.start
		case n != -1:
			at = time.Unix(n, 0)
		}
	}
	return at
}

func grouped(digits string) string {
	return digits // The C locale groups nothing.
}

func quoteBackslashGNU(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n'\"\\|&;()<>!*?[]$`#~=%^{}") || hasControl(s) {
		if hasControl(s) {
			return quoteANSI(s)
		}
		if strings.Contains(s, "'") && !strings.ContainsAny(s, "\"$`\\!") {
			return `"` + s + `"`
		}
		return quoteSingle(s)
	}
	return s
}

// integer reads the next argument as a number of C, or as the code of a character behind a quote.
func (f *format) integer() int64 {
	a, ok := f.next()
	if !ok || a == "" {
		return 0
	}
	if a[0] == '\'' || a[0] == '"' {
		r, _ := utf8.DecodeRuneInString(a[1:])
		if len(a) == 1 {
			r = 0
		}
		return int64(r)
	}
	s := strings.TrimLeft(a, " \t\n")
	end := 0
	if end < len(s) && (s[end] == '-' || s[end] == '+') {
		end++
	}
	base := 10
	switch {
	case strings.HasPrefix(s[end:], "0x") || strings.HasPrefix(s[end:], "0X"):
		base = 16
		end += 2
	case end < len(s) && s[end] == '0':
		base = 8
	}
	digits := end
	for digits < len(s) && hexDigit(s[digits]) >= 0 && hexDigit(s[digits]) < base {
		digits++
	}
	text := s[:digits]
	if base == 16 {
		text = strings.Replace(strings.Replace(text, "0x", "", 1), "0X", "", 1)
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), base, 64)
	if err != nil {
		if u, uerr := strconv.ParseUint(strings.TrimPrefix(text, "+"), base, 64); uerr == nil {
			return int64(u)
		}
		if strings.Contains(err.Error(), "range") {
			if f.warn(a + ": Numerical result out of range"); !f.gnu {
				f.status = 0
			}
			f.status = 1
			return n
		}
	}
	if digits < len(s) || text == "" || text == "-" || text == "+" {
		switch {
		case f.gnu && digits > 0 && text != "":
			f.warn("‘" + a + "’: value not completely converted")
		case f.gnu:
			f.warn("‘" + a + "’: expected a numeric value")
		default:
			f.warn(a + ": invalid number")
		}
		f.status = 1
	}
	return n
}

func (f *format) float() float64 {
	a, ok := f.next()
	if !ok || a == "" {
		return 0
	}
	if a[0] == '\'' || a[0] == '"' {
		r, _ := utf8.DecodeRuneInString(a[1:])
		return float64(r)
	}
	s := strings.TrimSpace(a)
	for end := len(s); end > 0; end-- {
		if x, err := strconv.ParseFloat(strings.ReplaceAll(s[:end], "_", "x_"), 64); err == nil || strings.Contains(err.Error(), "range") {
			if end < len(s) {
				f.warn(a + ": invalid number")
				f.status = 1
			}
			return x
		}
		if n, err := strconv.ParseInt(s[:end], 0, 64); err == nil && end == len(s) {
			return float64(n)
		}
	}
	f.warn(a + ": invalid number")
	f.status = 1
	return 0
}

// formatFloat writes a number as printf of C does.
func formatFloat(x float64, c byte, flags string, precision int) string {
	verb := "%" + strings.NewReplacer("'", "", "0", "", "-", "").Replace(flags)
	switch {
	case math.IsInf(x, 0) || math.IsNaN(x):
		s := "inf"
		if math.IsNaN(x) {
			s = "nan"
		} else if x < 0 {
			s = "-inf"
		}
		if c >= 'A' && c <= 'Z' {
			s = strings.ToUpper(s)
		}
		return s
	case c == 'a' || c == 'A':
		s := fmt.Sprintf("%x", x)
		if c == 'A' {
			s = strings.ToUpper(s)
		}
		return s
	}
	if precision < 0 {
		precision = 6
	}
	if c == 'g' || c == 'G' {
		precision = max(precision, 1)
	}
	return fmt.Sprintf(verb+"."+strconv.Itoa(precision)+string(c), x)
}

func biPrintf(sh *shell, args []string) int {
	args = args[1:]
	variable := ""
	if len(args) > 1 && args[0] == "-v" {
		variable, args = args[1], args[2:]
		if base, _, _ := splitSubscript(variable); !validName(base) {
			sh.complain("printf", "`%s': not a valid identifier", variable)
			return 2
		}
	} else if len(args) > 0 && strings.HasPrefix(args[0], "-v") && len(args[0]) > 2 {
		variable, args = args[0][2:], args[1:]
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0][1] != '-' && variable == "" && args[0][1] >= 'a' &&
		args[0][1] <= 'z' {
		sh.complain("printf", "%s: invalid option", args[0][:2])
		sh.stderr("printf: usage: printf [-v var] format [arguments]\n")
		return 2
	}
	if len(args) == 0 {
		sh.stderr("printf: usage: printf [-v var] format [arguments]\n")
		return 2
	}
	f := &format{args: args[1:], now: sh.p.Now, start: sh.started, zone: func() *time.Location { return zoneOf(sh) }, warn: func(text string) {
		sh.complain("printf", "%s",
			text)
	}}
	held := 0
	f.grow = func(n int) {
		sh.charge(20 + n/16)
		if n > held+1<<16 {
			spareMemory(sh, n)
			held = n
		}
	}
	f.run(args[0])
	if variable == "" {
		if status := sh.stdout("printf", f.out.String()); status != 0 {
			return status
		}
		return f.status
	}
	var err error
	s, _, _ := strings.Cut(f.out.String(), "\x00")
	if base, sub, ok := splitSubscript(variable); ok {
		err = assignElement(sh, base, sub, s, false)
	} else {
		err = sh.assign(variable, s, false)
	}
	if err != nil {
		sh.complain("printf", "%s", err)
		return 1
	}
	return f.status
}
