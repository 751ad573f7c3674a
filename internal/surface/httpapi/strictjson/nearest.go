package strictjson

import "strings"

// Nearest returns the name that was most likely meant by text, or "" if none is near: at most a third of its letters may differ.
// Case, and - or . written for _, cost nothing.
func Nearest(text string, names []string) string {
	if len(text) > 64 {
		return ""
	}
	best, least := "", len(text)/3+1
	for _, name := range names {
		if d := distance(fold(text), fold(name)); d < least || best == "" && d == least && d <= 1 {
			best, least = name, d
		}
	}
	return best
}

// fold makes spellings of one name alike: durationSeconds and duration-seconds become durationseconds, as duration_seconds does.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", ".", "", "_", "").Replace(name))
}

// distance counts the insertions, deletions, replacements and swaps of neighbours between two short texts.
func distance(a, b string) int {
	before, above := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, above[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, above = above, row
	}
	return above[len(b)]
}
