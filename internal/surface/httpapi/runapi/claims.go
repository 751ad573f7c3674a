package runapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	capability "agentbox/internal/domain/token"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/query"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// maxOrderBody is the most that a request for a run of an engine may have.
const maxOrderBody = run.MaxGiven + 256<<10

// orderRequest asks for a run that an engine executes.
type orderRequest struct {
	Room        id.Room         `json:"room_id,omitempty" maxLength:"64" doc:"The room that the run belongs to; the default room unless given"`
	Thread      id.Thread       `json:"thread_id,omitempty" maxLength:"64" doc:"The thread of the room that it belongs to"`
	Experiment  id.Experiment   `json:"experiment_id,omitempty" maxLength:"64"`
	Title       string          `json:"title,omitempty" maxLength:"200"`
	Goal        string          `json:"goal,omitempty" maxLength:"4000"`
	Input       json.RawMessage `json:"input,omitempty" doc:"What the engine is to work on, any JSON"`
	Tags        []string        `json:"tags,omitempty" maxItems:"20"`
	Correlation string          `json:"correlation_id,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9._:-]*$" doc:"Ties the run to what led to it; the request's unless given"`
}

type claimRequest struct {
	Room        id.Room `json:"room_id,omitempty" maxLength:"64" doc:"Only a run of this room"`
	Work        string  `json:"work,omitempty" enum:"operations" doc:"Only a run whose input is of this kind: an operations message of protocol 1.0 with a space_id"`
	WaitSeconds int64   `json:"wait_seconds,omitempty" minimum:"0" maximum:"60" doc:"Seconds to wait for a run where there is none now; 0 by default"`
	Wait        int64   `json:"wait,omitempty" minimum:"0" maximum:"60" deprecated:"true" doc:"The older name of wait_seconds, in seconds too; the longer of the two counts"`
}

// claimAnswer is a run that an engine has from now on, or none.
type claimAnswer struct {
	Claimed bool            `json:"claimed" doc:"Whether there was a run to be claimed"`
	Run     *run.Run        `json:"run,omitempty"`
	Input   json.RawMessage `json:"input,omitempty" doc:"What was asked for, as it was sent"`
	Token   string          `json:"claim_token,omitempty" doc:"Shows that the run is the engine's; it is said here and nowhere else"`
	Permit  string          `json:"permit,omitempty" doc:"Signed: the engine may work on the run. Sent back once, with what ends it, it makes that recorded as permitted"`
	Fence   uint64          `json:"fence,omitempty" doc:"Rises with each claim of the run"`
	Expires time.Time       `json:"expires_at,omitzero" doc:"When the claim is over unless it is renewed; every ten seconds is often enough"`

	Reason  string     `json:"reason,omitempty" enum:"nothing_waits,workspace_full" doc:"Why there was none: no run waits that the engine may have, or as many run in the workspace as may"`
	Waiting int        `json:"waiting,omitempty" doc:"Runs that wait until fewer run in the workspace; 1000 stands for at least as many"`
	Tasks   *run.Tasks `json:"tasks,omitempty" doc:"How full the workspace is, where that is why"`
}

// tokenBody is the body of an engine that sends only its token.
type tokenBody struct {
	Token string `json:"claim_token,omitempty" maxLength:"200"`
}

type completeRequest struct {
	Token   string          `json:"claim_token,omitempty" maxLength:"200"`
	Permit  string          `json:"permit,omitempty" maxLength:"2000" doc:"The permit of the claim; without it what is reported is recorded as attested"`
	Summary string          `json:"summary,omitempty" maxLength:"4000"`
	Output  json.RawMessage `json:"output,omitempty" doc:"What came of it, any JSON of at most 64 KiB"`
}

type failRequest struct {
	Token   string `json:"claim_token,omitempty" maxLength:"200"`
	Permit  string `json:"permit,omitempty" maxLength:"2000" doc:"The permit of the claim; without it what is reported is recorded as attested"`
	Error   any    `json:"error,omitempty" doc:"Why: any JSON, best an object with a stable word in code and a sentence in message. A string stays accepted in this version"`
	Message string `json:"message,omitempty" maxLength:"4000" doc:"Why, for people"`

	Output json.RawMessage `json:"output,omitempty" doc:"What came of it all the same, any JSON of at most 64 KiB"`
}

// said returns why the run failed: a word, a sentence, and what came of it all the same. An error that is not a string stands in the
// output as error, beside what the output has where that is an object; its code and message are the word and the sentence where none is
// sent beside it.
func (q failRequest) said() (why, message string, output json.RawMessage, err error) {
	message, output = q.Message, q.Output
	if q.Error == nil {
		return "", message, output, nil
	}
	if text, ok := q.Error.(string); ok {
		return text, message, output, nil
	}
	if object, ok := q.Error.(map[string]any); ok {
		why, _ = object["code"].(string)
		if said, ok := object["message"].(string); ok && message == "" {
			message = said
		}
	}
	fields := map[string]any{}
	if len(output) > 0 && json.Unmarshal(output, &fields) != nil {
		fields = map[string]any{"output": output}
	}
	fields["error"] = q.Error
	output, err = json.Marshal(fields)
	return cmp.Or(why, "engine_error"), message, output, err
}

// claimState says how a claim stands.
type claimState struct {
	OK      bool      `json:"ok"`
	Fence   uint64    `json:"fence"`
	Expires time.Time `json:"expires_at" doc:"When the claim is over unless it is renewed"`
}

type releasedAnswer struct {
	Released bool `json:"released"`
}

// runState says how a run stands.
type runState struct {
	OK     bool       `json:"ok"`
	Run    id.Run     `json:"run_id"`
	Status run.Status `json:"status"`
}

// EngineRunPath names a run, and shows that the caller has it.
type EngineRunPath struct {
	Run   string `path:"run_id" doc:"The run"`
	Token string `header:"X-Claim-Token" maxLength:"200" doc:"The claim's token, if it is not in the body; of a run that nobody has claimed, none"`
}

var errTwoTokens = fault.New(fault.Invalid, "invalid_claim_token",
	"the header x-claim-token and the field claim_token differ; send one of them")

// hold is the run of a path, with the token of the header or of the body.
func (p EngineRunPath) hold(c wire.Call, sent string) (engines.Hold, error) {
	token, err := oneToken(p.Token, sent)
	return engines.Hold{Workspace: c.Caller.Workspace, Run: id.Run(p.Run), Token: token}, err
}

func oneToken(header, body string) (string, error) {
	if header != "" && body != "" && header != body {
		return "", errTwoTokens
	}
	if header == "" {
		header = body
	}
	return header, nil
}

// Claims are the operations for runs of engines, which engines claim.
type Claims struct {
	access.Part
	spaces  *spaces.Service
	engines *engines.Service
	query   *query.Service
	of      *Runs
}

// NewClaims returns the operations for runs of engines, which engines claim.
func NewClaims(p access.Part, spaces *spaces.Service, engines *engines.Service, query *query.Service, of *Runs) *Claims {
	return &Claims{p, spaces, engines, query, of}
}

// Register adds the operations to the server.
func (s *Claims) Register() {
	wire.HandleOnce(s.Server, wire.Operation{
		ID: "create-engine-run", Needs: wire.DoesThere(policy.RunCreate), Method: http.MethodPost, Path: "/v1/runs", Tag: "engines",
		Summary: "Ask for a run that an engine executes", Rate: wire.RateRuns,
		Repeat: wire.RepeatRecalled, Status: http.StatusCreated, MaxBody: maxOrderBody,
		Detail: "It waits, queued, until an engine claims it. A run of operations that the daemon executes in a space is made with POST " +
			"/v1/spaces/{space_id}/runs.",
	}, s.spoken, s.createEngineRun, func(r run.Run) *struct{ Body run.Run } { return &struct{ Body run.Run }{r} })
	wire.Handle(s.Server, wire.Operation{
		ID: "claim-run", Needs: wire.DoesThere(policy.RunClaim), Method: http.MethodPost, Path: "/v1/runs/claim", Tag: "engines", Engines: true,
		Summary: "Claim the next run", Repeat: wire.RepeatRecalled, Waits: true, MaxBody: maxClaimBody,
		Detail: "The oldest run that waits, else the oldest whose engine was not heard of for 30 seconds. From then on everything that is " +
			"recorded of the run takes the claim's token. " +
			"A run that a label keeps from the engine is passed over: it asks for access first.",
	}, s.claimRun)
	wire.Handle(s.Server, wire.Operation{
		ID: "renew-claim", Needs: wire.Does(policy.RunRenew, "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/lease/heartbeat", Tag: "engines", Rate: wire.RateClaims, Engines: true,
		Summary: "Go on owning a run, for another 30 seconds", Repeat: wire.RepeatRecalled,
	}, s.renewClaim)
	wire.Handle(s.Server, wire.Operation{
		ID: "release-claim", Needs: wire.Does(policy.RunRelease, "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/lease/release", Tag: "engines", Rate: wire.RateClaims, Engines: true, Summary: "Give a run back, not done",
		Repeat: wire.RepeatRecalled,
	}, s.releaseClaim)
	wire.Handle(s.Server, wire.Operation{
		ID: "start-run", Needs: wire.Does(policy.RunBegin, "run_id").PastLabels(), Method: http.MethodPost, Path: "/v1/runs/{run_id}/start",
		Tag: "engines", Engines: true, Summary: "Start a run by hand, without a claim", Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *struct {
		EngineRunPath
		Body *tokenBody
	}) (*struct{ Body runState }, error) {
		sent := ""
		if in.Body != nil {
			sent = in.Body.Token
		}
		return s.moved(ctx, c, in.EngineRunPath, sent, func(h engines.Hold) (run.Run, error) {
			return s.engines.Begin(ctx, c.Once(), h)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "complete-run", Needs: wire.Does(policy.RunComplete, "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/complete", Tag: "engines", Rate: wire.RateClaims, Engines: true, Summary: "End a run well",
		Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *struct {
		EngineRunPath
		Body *completeRequest
	}) (*struct{ Body runState }, error) {
		var sent completeRequest
		if in.Body != nil {
			sent = *in.Body
		}
		return s.moved(ctx, c, in.EngineRunPath, sent.Token, func(h engines.Hold) (run.Run, error) {
			h.Permit = sent.Permit
			return s.engines.Complete(ctx, c.Once(), h, sent.Summary, sent.Output)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "fail-run", Needs: wire.Does(policy.RunFail, "run_id").PastLabels(), Method: http.MethodPost, Path: "/v1/runs/{run_id}/fail",
		Tag: "engines", Rate: wire.RateClaims, Engines: true, Summary: "End a run badly", Repeat: wire.RepeatRecalled,
	}, func(ctx context.Context, c wire.Call, in *struct {
		EngineRunPath
		Body *failRequest
	}) (*struct{ Body runState }, error) {
		var sent failRequest
		if in.Body != nil {
			sent = *in.Body
		}
		return s.moved(ctx, c, in.EngineRunPath, sent.Token, func(h engines.Hold) (run.Run, error) {
			h.Permit = sent.Permit
			why, message, output, err := sent.said()
			if err != nil {
				return run.Run{}, err
			}
			return s.engines.Fail(ctx, c.Once(), h, why, message, output)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "cancel-engine-run", Home: wire.AtRun, Needs: wire.Does(policy.RunCancel, "run_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/cancel", Tag: "runs", Summary: "End a run, whoever executes it", Repeat: wire.RepeatRecalled,
		Status: http.StatusAccepted,
		Detail: "An engine learns of it with the next thing that it records of the run: everything is refused from then on.",
	}, s.cancelAnyRun)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-attempts", Needs: wire.Shows("run", "run_id"), Method: http.MethodGet, Path: "/v1/runs/{run_id}/attempts", Tag: "engines",
		Engines: true, Summary: "The last 100 attempts of engines to execute a run",
	}, func(ctx context.Context, c wire.Call, in *struct {
		Run string `path:"run_id" doc:"The run"`
	}) (*struct{ Body attemptList }, error) {
		found, err := s.engines.Look.Attempts(ctx, c.Caller.Workspace, id.Run(in.Run))
		return &struct{ Body attemptList }{attemptList{found}}, err
	})
}

type attemptList struct {
	Attempts []run.Attempt `json:"attempts" nullable:"false"`
}

// then returns a run as it stood when a request was answered for the first time.
func (s *Claims) then(ctx context.Context, c wire.Call, r id.Run) (run.Run, error) {
	return access.Then[run.Run](ctx, s.Access, c, query.Subject{Projection: run.Projection, Key: string(r)})
}

// spoken returns the run that a repeated request was about, which its path does not name.
func (s *Claims) spoken(ctx context.Context, c wire.Call) (run.Run, error) {
	first, err := s.query.At(ctx, c.Caller.Workspace, c.Repeated)
	if err != nil {
		return run.Run{}, err
	}
	return s.then(ctx, c, first.Run)
}

func (s *Claims) createEngineRun(ctx context.Context, c wire.Call, in *struct{ Body orderRequest }) (run.Run, error) {
	origin, q := c.Once(), in.Body
	var err error
	if q.Input, err = s.OrderNamed(ctx, c, q.Input); err != nil {
		return run.Run{}, err
	}
	if err := s.executable(ctx, c, q.Input); err != nil {
		return run.Run{}, err
	}
	if in, ok := errand.SpaceOf(q.Input); ok { // the daemon executes it in the caller's name
		m, _ := errand.ReadMission(q.Input)
		if err := s.reaches(ctx, c, in, q.Thread, m.After); err != nil {
			return run.Run{}, err
		}
	}
	if q.Correlation != "" {
		origin.Correlation = id.Correlation(q.Correlation)
	}
	return s.engines.Create(ctx, origin, engines.Request{
		Workspace: c.Caller.Workspace, Room: q.Room, Thread: q.Thread, Experiment: q.Experiment, Title: q.Title, Goal: q.Goal, Input: q.Input,
		Tags: q.Tags,
	})
}

// reaches refuses a run that would show its caller data which labels or the capability token keep from them: the files of a space, the
// messages of a thread, the conversation of an earlier run. Each of the three may be empty.
func (s *Claims) reaches(ctx context.Context, c wire.Call, in id.Space, thread id.Thread, after id.Run) error {
	if err := s.Labelled(ctx, c, map[string]string{"space_id": string(in), "thread_id": string(thread), "run_id": string(after)}); err != nil {
		return err
	}
	if thread != "" { // a caller whose agent reads a thread needs the right to read it
		if err := s.Bound(ctx, c, wire.Shows("message", "thread_id"), map[string]string{"thread_id": string(thread)}); err != nil {
			return err
		}
	}
	if after == "" { // the same of a conversation that goes on
		return nil
	}
	return s.Bound(ctx, c, wire.Shows("run", "run_id"), map[string]string{"run_id": string(after)})
}

// maxClaimBody is how many bytes a claim takes, which holds room among the bodies that are worked on for as long as it waits.
const maxClaimBody = 4 << 10

func (s *Claims) claimRun(waiting context.Context, c wire.Call, in *struct{ Body *claimRequest }) (*struct{ Body claimAnswer }, error) {
	ctx := c.Lasting(waiting) // a caller who closed their side may still read
	var want engines.Wanted
	var wait time.Duration
	if in.Body != nil {
		want = engines.Wanted{Room: in.Body.Room, Work: in.Body.Work}
		wait = time.Duration(max(in.Body.WaitSeconds, in.Body.Wait)) * time.Second
	}
	if err := s.Permitted(ctx, c, capability.Use{Action: policy.RunClaim, Room: want.Room}); err != nil {
		return nil, err
	}
	var token string
	doc, err := wire.Once(c, func() (run.Run, error) {
		doc, err := s.spoken(ctx, c)
		token = s.engines.Claimed(doc)
		return doc, err
	}, func() (doc run.Run, err error) {
		doc, token, err = s.claim(waiting, c, want, wait)
		return doc, err
	})
	if errors.Is(err, errand.ErrNothing) {
		return s.nothing(ctx, c, want, wait)
	}
	if err != nil {
		return nil, err
	}
	given, err := s.engines.Given(ctx, doc)
	if err != nil {
		return nil, err
	}
	a := claimAnswer{Claimed: true, Run: &doc, Input: given, Token: token, Permit: s.engines.Permits.OfClaim(doc), Fence: doc.Fence}
	if doc.Claim != nil {
		a.Expires = doc.Claim.Until
	}
	return &struct{ Body claimAnswer }{a}, nil
}

// errStopping is the answer to waiting callers while the daemon stops. There may be a run for them, but this daemon hands out no more.
var errStopping = fault.New(fault.Unavailable, "stopping", "the daemon stops; ask again when it is started again")

// nothing is the answer to a claim of nothing: it says why.
func (s *Claims) nothing(ctx context.Context, c wire.Call, want engines.Wanted, waited time.Duration) (*struct{ Body claimAnswer },
	error) {
	select {
	case <-s.Stopping():
		if waited > 0 {
			return nil, errStopping
		}
	default:
	}
	full, err := s.engines.Tasks(ctx, c.Caller.Workspace)
	if err != nil {
		return nil, err
	}
	a := claimAnswer{Reason: "nothing_waits"}
	if a.Waiting, err = s.engines.Behind(ctx, c.Caller.Workspace, want, full); err != nil {
		return nil, err
	}
	if a.Waiting > 0 {
		a.Reason, a.Tasks = "workspace_full", &full
	}
	return &struct{ Body claimAnswer }{a}, nil
}

// executable refuses an order of operations that no engine could execute. It gives the same errors as a request to the space itself. Any
// other input is a matter between the caller and their engine.
func (s *Claims) executable(ctx context.Context, c wire.Call, input json.RawMessage) error {
	order, ok := errand.ReadOrder(input)
	if !ok {
		return nil
	}
	m, err := run.ParseOperations(order.Operations)
	if err == nil {
		err = m.Refused() // an engine need not know how to skip a malformed operation
	}
	if err != nil {
		return err
	}
	sp, err := s.spaces.Catalog.Space(ctx, c.Caller.Workspace, order.Space)
	if err == nil && sp.Status == space.Destroyed {
		err = runs.ErrSpaceNotReady
	}
	return err
}

// claim claims the next run, and waits for one as long as the caller said.
func (s *Claims) claim(waiting context.Context, c wire.Call, want engines.Wanted, wait time.Duration) (run.Run, string, error) {
	ctx := c.Lasting(waiting)
	if want.Room != "" {
		if err := s.engines.Place(ctx, c.Caller.Workspace, want.Room, ""); err != nil {
			return run.Run{}, "", err // nothing would ever come
		}
	}
	sight, err := s.Sight(ctx, c)
	if err != nil {
		return run.Run{}, "", err
	}
	want.Shows = func(r id.Run) (shows bool, err error) {
		if wait > 0 { // what holds when the run is handed over, not when it was asked for
			if err := c.Still(); err != nil {
				return false, err
			}
			if sight, err = s.Sight(ctx, c); err != nil {
				return false, err
			}
		}
		return sight.Shows(ctx, label.Resource{Type: label.OfRun, ID: string(r)})
	}
	if wait == 0 {
		return s.engines.Claim(ctx, c.Once(), c.Caller.Workspace, want)
	}
	release, err := s.Waits(c)
	if err != nil {
		return run.Run{}, "", err
	}
	defer release()
	limited, stop := s.Within(waiting, wait, s.Stopping())
	defer stop()
	return s.engines.Await(limited, c.Once(), c.Caller.Workspace, want)
}

func (s *Claims) renewClaim(ctx context.Context, c wire.Call, in *struct {
	EngineRunPath
	Body *tokenBody
}) (*struct{ Body claimState }, error) {
	doc, err := s.claimed(ctx, c, in.EngineRunPath, in.Body, s.engines.Renew)
	if err != nil {
		return nil, err
	}
	a := claimState{OK: true, Fence: doc.Fence}
	if doc.Claim != nil {
		a.Expires = doc.Claim.Until
	}
	return &struct{ Body claimState }{a}, nil
}

func (s *Claims) releaseClaim(ctx context.Context, c wire.Call, in *struct {
	EngineRunPath
	Body *tokenBody
}) (*struct{ Body releasedAnswer }, error) {
	if _, err := s.claimed(ctx, c, in.EngineRunPath, in.Body, s.engines.Release); err != nil {
		return nil, err
	}
	return &struct{ Body releasedAnswer }{releasedAnswer{true}}, nil
}

// claimed does what takes the token of a claim.
func (s *Claims) claimed(ctx context.Context, c wire.Call, p EngineRunPath, sent *tokenBody, do doing) (run.Run, error) {
	body := ""
	if sent != nil {
		body = sent.Token
	}
	h, err := p.hold(c, body)
	if err != nil {
		return run.Run{}, err
	}
	if h.Token == "" {
		return run.Run{}, run.ErrNoToken
	}
	return wire.Once(c, func() (run.Run, error) { return s.then(ctx, c, h.Run) }, func() (run.Run, error) { return do(ctx, c.Once(), h) })
}

// doing is the use of a claim in a request.
type doing func(context.Context, event.Origin, engines.Hold) (run.Run, error)

// moved does what brings a run into another state.
func (s *Claims) moved(ctx context.Context, c wire.Call, p EngineRunPath, sent string, do func(engines.Hold) (run.Run,
	error)) (*struct{ Body runState }, error) {
	h, err := p.hold(c, sent)
	if err != nil {
		return nil, err
	}
	doc, err := wire.Once(c, func() (run.Run, error) { return s.then(ctx, c, h.Run) }, func() (run.Run, error) { return do(h) })
	if err != nil {
		return nil, err
	}
	return &struct{ Body runState }{runState{true, doc.ID, doc.Status}}, nil
}

func (s *Claims) cancelAnyRun(ctx context.Context, c wire.Call, in *struct {
	Run  string `path:"run_id" doc:"The run"`
	Body *cancelRequest
}) (*struct{ Body run.Run }, error) {
	p := struct {
		RunPath
		Body *cancelRequest
	}{RunPath{Run: in.Run}, in.Body}
	return s.of.cancelRun(ctx, c, &p)
}
