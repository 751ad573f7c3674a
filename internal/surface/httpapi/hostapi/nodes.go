package hostapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/nodes"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

type nodeList struct {
	Nodes []node.Member `json:"nodes" nullable:"false"`
}

// NodePath names a node.
type NodePath struct {
	Node string `path:"node_id" doc:"The node"`
}

// Nodes are the operations for the daemons of a log.
type Nodes struct {
	access.Part
	nodes *nodes.Service
}

// NewNodes returns the operations for the daemons of a log.
func NewNodes(p access.Part, nodes *nodes.Service) *Nodes {
	return &Nodes{p, nodes}
}

// Register adds the operations to the server.
func (s *Nodes) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-nodes", Needs: wire.Shows("host"), Method: http.MethodGet, Path: "/v1/nodes", Tag: "service",
		Summary: "List the daemons that work on the log",
		Detail: "In the order in which they joined first, with those that do not work now and those that were given up. Of a daemon that " +
			"works alone it is the only one.",
	}, func(ctx context.Context, _ wire.Call, _ *struct{}) (*struct{ Body nodeList }, error) {
		found, err := s.nodes.List(ctx)
		for i := range found {
			found[i].NodeID = found[i].Node
		}
		return &struct{ Body nodeList }{nodeList{found}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "remove-node", Needs: wire.Does(policy.NodeRemove), Method: http.MethodDelete, Path: "/v1/nodes/{node_id}", Tag: "service",
		Home:    wire.AtLeader,
		Summary: "Give up a daemon that never comes back",
		Detail: "Only the owner of ws_dev may, and only of one that does not work. Its spaces end with their runs, and nothing that it writes " +
			"is taken any more; to remove it again finishes that.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		NodePath
		Reason string `query:"reason" maxLength:"1000" doc:"Why"`
	}) (*struct{ Body node.Member }, error) {
		done, err := s.nodes.Remove(ctx, c.Once(), c.Caller, id.Node(in.Node), in.Reason)
		done.NodeID = done.Node
		return &struct{ Body node.Member }{done}, err
	})
}
