module agentbox/bench

go 1.26.8

replace agentbox => ../

require (
	agentbox v0.0.0
	github.com/ncruces/go-sqlite3 v0.35.6
)

require (
	github.com/gowebpki/jcs v1.0.2 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.3.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
