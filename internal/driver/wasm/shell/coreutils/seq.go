package coreutils

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"agentbox/internal/driver/wasm/program"
)

func seq(p *program.Process) int {
	// A negative number is no option.
	opts := []program.Option{}
	args := p.Args[1:]
	separator, format, equal := "\n", "", false
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && !(args[0][1] >= '0' && args[0][1] <= '9' || args[0][1] == '.') {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		value := func(short, long string) (string, bool) {
			switch {
			case a == short || a == long:
				if len(args) == 0 {
					usage(p, 1, "option requires an argument -- '%s'", short[1:])
				}
				v := args[0]
				args = args[1:]
				return v, true
			case strings.HasPrefix(a, long+"="):
				return a[len(long)+1:], true
			case strings.HasPrefix(a, short) && !strings.HasPrefix(a, "--"):
				return a[2:], true
			}
			return "", false
		}
		if v, ok := value("-s", "--separator"); ok {
			separator = v
		} else if v, ok := value("-f", "--format"); ok {
			format = v
		} else if a == "-w" || a == "--equal-width" {
			equal = true
		} else {
			p.Args = append([]string{p.Args[0]}, a)
			opts, _ = p.Options(1, "")
		}
	}
	_ = opts
	if len(args) == 0 {
		usage(p, 1, "missing operand")
	}
	if len(args) > 3 {
		usage(p, 1, "extra operand ‘%s’", args[3])
	}
	nums := make([]float64, len(args))
	decimals, whole := 0, true
	for i, a := range args {
		n, err := strconv.ParseFloat(a, 64)
		if err != nil {
			usage(p, 1, "invalid floating point argument: ‘%s’", a)
		}
		nums[i] = n
		if dot := strings.IndexByte(a, '.'); dot >= 0 && i != len(args)-1 || dot >= 0 && len(args) == 1 {
			decimals = max(decimals, len(a)-dot-1)
			whole = false
		}
		if strings.ContainsAny(a, ".eE") {
			whole = false
		}
	}
	first, step, last := 1.0, 1.0, nums[len(nums)-1]
	if len(nums) > 1 {
		first = nums[0]
	}
	if len(nums) == 3 {
		if step = nums[1]; step == 0 {
			usage(p, 1, "invalid Zero increment value: ‘%s’", args[1])
		}
	}
	if len(args) == 1 {
		decimals = 0
	}
	width := 0
	text := func(x float64) string {
		if format != "" {
			return fmt.Sprintf(format, x)
		}
		s := strconv.FormatFloat(x, 'f', decimals, 64)
		if equal && len(s) < width {
			if s[0] == '-' {
				return "-" + strings.Repeat("0", width-len(s)) + s[1:]
			}
			return strings.Repeat("0", width-len(s)) + s
		}
		return s
	}
	if equal && format == "" {
		end := first + math.Floor((last-first)/step)*step
		width = max(len(text(first)), len(text(end)))
		if len(args) > 0 {
			width = max(width, len(strconv.FormatFloat(last, 'f', decimals, 64)))
		}
	}
	if format != "" && !strings.Contains(format, "%") {
		p.Errorf("format ‘%s’ has no %% directive", format)
		return 1
	}
	out := p.Out()
	printed := false
	put := func(s string) {
		p.Charge(20)
		if printed {
			_, _ = out.WriteString(separator)
		}
		printed = true
		_, _ = out.WriteString(s)
	}
	if whole && format == "" && math.Abs(first) < 1<<52 && math.Abs(last) < 1<<52 {
		a, d, b := int64(first), int64(step), int64(last)
		for n := a; d > 0 && n <= b || d < 0 && n >= b; n += d {
			if equal {
				put(text(float64(n)))
			} else {
				put(strconv.FormatInt(n, 10))
			}
		}
	} else {
		for i := 0.0; ; i++ {
			x := first + i*step
			if step > 0 && x > last+step*1e-10 || step < 0 && x < last+step*1e-10 || math.IsNaN(x) {
				break
			}
			put(text(x))
		}
	}
	if printed {
		_ = out.WriteByte('\n')
	}
	return 0
}

func yes(p *program.Process) int {
	_, words := p.Options(1, "+")
	line := strings.Join(words, " ") + "\n"
	if len(words) == 0 {
		line = "y\n"
	}
	block := []byte(strings.Repeat(line, max(4096/len(line), 1)))
	for {
		p.Charge(len(block))
		_, _ = p.Out().Write(block)
	}
}
