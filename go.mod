module agentbox

go 1.26.8

require github.com/gowebpki/jcs v1.0.2

require pgregory.net/rapid v1.3.0
require golang.org/x/sys v0.49.0
