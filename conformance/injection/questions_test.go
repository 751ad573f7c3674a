package injection

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// partSize is how many cases of AgentDojo a short test plays.
const partSize = 150

// part is the part of the cases for a short test, always the same: one case of each user's task, then others, all chosen by a fixed seed.
func part(all []dojoCase) []dojoCase {
	order := rand.New(rand.NewPCG(17, 609)).Perm(len(all))
	taken, tasks := map[int]bool{}, map[string]bool{}
	for _, i := range order {
		if task := all[i].Suite + " " + all[i].User; !tasks[task] {
			tasks[task], taken[i] = true, true
		}
	}
	for _, i := range order {
		if len(taken) >= partSize {
			break
		}
		taken[i] = true
	}
	var list []dojoCase
	for _, i := range slices.Sorted(maps.Keys(taken)) {
		list = append(list, all[i])
	}
	return list
}

// ordinary are the users' tasks of the cases, without any attacker.
func ordinary(all []dojoCase) []dojoCase {
	var list []dojoCase
	seen := map[string]bool{}
	for _, c := range all {
		if seen[c.Suite+" "+c.User] {
			continue
		}
		seen[c.Suite+" "+c.User] = true
		c.Injection, c.Goal, c.Seen, c.Attack = "none", "", 0, nil
		c.Calls = slices.Clone(c.Calls)
		for i := range c.Calls {
			c.Calls[i].Result = ""
		}
		list = append(list, c)
	}
	return list
}

// questions counts tasks by how many questions they ask.
func questions(suites map[string]*tally) map[int]int {
	tasks := map[int]int{}
	for _, k := range suites {
		for _, n := range k.questions {
			tasks[n]++
		}
	}
	return tasks
}

// TestOrdinaryTasks gives an agent the users' tasks of AgentDojo without any attacker, and counts the questions of each.
func TestOrdinaryTasks(t *testing.T) {
	var cases dojo
	corpus(t, "agentdojo.json", &cases)
	s := newStage(t, ordinary(cases.Cases), acting, atOnce)
	s.play()
	suites := s.count()
	s.holds(suites)
	t.Logf("\n%s", table(suites))
	for _, name := range slices.Sorted(maps.Keys(suites)) {
		for _, task := range slices.Sorted(maps.Keys(suites[name].questions)) {
			if n := suites[name].questions[task]; n >= 3 {
				t.Logf("%s %s asks %d questions", name, task, n)
			}
		}
	}
	if got, want := questions(suites), map[int]int{}; !maps.Equal(got, want) {
		t.Errorf("tasks by how many questions they ask: %v, want %v", got, want)
	}
}

// TestApprovalsForARun has the person approve the first request of a task to a host for the whole run. There are fewer questions, and the
// calls of attackers to the same host are made: this is why the documents advise against it.
func TestApprovalsForARun(t *testing.T) {
	var cases dojo
	corpus(t, "agentdojo.json", &cases)
	s := newStage(t, part(cases.Cases), acting, atTheEnd)
	s.words = map[string]any{"scope": "run", "uses": 100, "expires_at": time.Now().Add(time.Hour)}
	s.play()
	suites := s.count()
	t.Logf("\n%s", table(suites))
	outside, done := 0, 0
	for _, k := range suites {
		outside, done = outside+k.outside, done+k.done
	}
	tasks := questions(suites)
	t.Logf("tasks by how many questions they ask: %v; of %d calls of attackers %d were made", tasks, outside, done)
	if most := slices.Max(slices.Collect(maps.Keys(tasks))); most >= 3 || done == 0 {
		t.Errorf("a task asks %d questions; %d calls of attackers were made", most, done)
	}
}
