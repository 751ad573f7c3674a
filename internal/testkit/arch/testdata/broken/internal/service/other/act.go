package other

import "broken/internal/domain/policy"

// Forgets does not say under what somebody acts.
func Forgets() bool { return policy.Judge(policy.Act{Who: "a"}) }

// Says says it, and what says nobody need not.
func Says() bool { return policy.Judge(policy.Act{Who: "a", Under: "b"}) || policy.Judge(policy.Act{}) }
