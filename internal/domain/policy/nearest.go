package policy

import "strings"

// Nearest returns the valid word that takes the fewest changes to reach. A word that is a part of a valid one takes one change.
func Nearest(word string, valid []string) string {
	best, least := "", 0
	for _, v := range valid {
		d := distance(word, v)
		if len(word) >= leastPart && strings.Contains(v, word) {
			d = min(d, 1)
		}
		if best == "" || d < least {
			best, least = v, d
		}
	}
	return best
}

// leastPart is how many bytes a word has at least whose place in a longer word tells something.
const leastPart = 4

// distance is the Levenshtein distance of two words, of which only the first 64 bytes count.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev, row[j+1] = row[j+1], min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
