package policy

// Nearest returns the valid word that takes the fewest changes to reach.
func Nearest(word string, valid []string) string {
	best, least := "", 0
	for _, v := range valid {
		if d := distance(word, v); best == "" || d < least {
			best, least = v, d
		}
	}
	return best
}

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
