module agentbox/bench

go 1.26.8

replace agentbox => ../
