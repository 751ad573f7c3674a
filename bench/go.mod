module agentbox/bench

go 1.26.8

replace agentbox => ../

require (
	agentbox v0.0.0
	github.com/cedar-policy/cedar-go v1.9.0
	github.com/ncruces/go-sqlite3 v0.35.6
	golang.org/x/sys v0.49.0
)

require (
	github.com/danielgtaylor/huma/v2 v2.37.2 // indirect
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3 // indirect
	github.com/gowebpki/jcs v1.0.2 // indirect
	github.com/ncruces/go-sqlite3-wasm/v6 v6.3.35304 // indirect
	github.com/ncruces/julianday v1.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	golang.org/x/exp v0.0.0-20220921023135-46d9e7742f1e // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
)
