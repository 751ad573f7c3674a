package spaceapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/wire"
)

func (s *Spaces) registerPauses() {
	wire.Handle(s.Server, wire.Operation{
		ID: "pause-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceUpdate, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/pause", Tag: "spaces", Summary: "Stop the processes of a space for a while", Repeat: wire.RepeatRecalled,
		Detail: "Its processes stand still and use no processor time, and the time limits of its commands stop. No operation begins: " +
			"a run that is sent to it waits until somebody resumes the space, or resumes it where resume_on_run is set. Its files can be " +
			"read and written. The end of its life does not move. If the daemon ends, the processes end with it, and the space stays paused.",
	}, s.pauseSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "resume-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceUpdate, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/resume", Tag: "spaces", Summary: "Let a paused space go on", Repeat: wire.RepeatRecalled,
		Detail: "The event space.resumed says with processes_ended that the processes are gone, because the daemon or the space ended " +
			"meanwhile: then the space goes on with its files alone.",
	}, s.resumeSpace)
}

func (s *Spaces) pauseSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body pauseRequest
}) (*spaceAnswer, error) {
	return s.once(ctx, c, in.Space, func() (space.Space, error) {
		how := spaces.Pause{Reason: in.Body.Reason, ResumeOnRun: in.Body.ResumeOnRun}
		return s.spaces.Pauses.Pause(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), how)
	})
}

func (s *Spaces) resumeSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spaceResumption
}) (*spaceAnswer, error) {
	return s.once(ctx, c, in.Space, func() (space.Space, error) {
		return s.spaces.Pauses.Resume(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), time.Duration(in.Body.TTL)*time.Second)
	})
}
