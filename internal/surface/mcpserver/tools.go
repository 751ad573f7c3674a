package mcpserver

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// add adds a tool. Its annotations tell the client whether it only reads or destroys, so that the client may ask its user first.
func add[In any](s *mcp.Server, name, title, description string, reads, destroys bool, do func(context.Context, *mcp.CallToolRequest, In) (
	*mcp.CallToolResult, any, error)) {
	open := false
	mcp.AddTool(s, &mcp.Tool{Name: name, Title: title, Description: description, Annotations: &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: reads, DestructiveHint: &destroys, OpenWorldHint: &open,
	}}, do)
}

// where has the space of a call.
type where struct {
	Space string `json:"space_id,omitempty" jsonschema:"id or name of a space; the session's own space if absent"`
}

func (s *session) codeTools(server *mcp.Server) {
	add(server, "run_code", "Run code", "Runs Python, JavaScript or TypeScript in an isolated interpreter that keeps its variables between "+
		"calls. "+
		"There is no network. Files of the space are in the current folder.", false, true, s.runCode)
	type command struct {
		where
		Command string            `json:"command" jsonschema:"one command line for the shell, at most 4096 characters"`
		Cwd     string            `json:"cwd,omitempty" jsonschema:"a folder of the space"`
		Timeout int               `json:"timeout_ms,omitempty" jsonschema:"milliseconds, 1000 to 3600000"`
		Env     map[string]string `json:"env,omitempty"`
	}
	add(server, "shell", "Run a command", "Runs a command line in the space: shell, coreutils, awk, sed, grep, jq, git and more. Policy "+
		"decides "+
		"each command in it.", false, true, func(ctx context.Context, req *mcp.CallToolRequest, in command) (*mcp.CallToolResult, any, error) {
		operation := map[string]any{"type": run.OpShell, "command": in.Command}
		if in.Cwd != "" {
			operation["cwd"] = in.Cwd
		}
		if in.Timeout != 0 {
			operation["timeout"] = in.Timeout
		}
		if len(in.Env) > 0 {
			operation["env"] = in.Env
		}
		return s.operate(ctx, req, in.Space, operation)
	})
}

// cell has the arguments of run_code.
type cell struct {
	where
	Language string `json:"language" jsonschema:"python, javascript or typescript"`
	Code     string `json:"code"`
	Context  string `json:"context,omitempty" jsonschema:"name of the interpreter; main if absent"`
	Timeout  int    `json:"timeout_ms,omitempty" jsonschema:"milliseconds"`
}

func (s *session) runCode(ctx context.Context, req *mcp.CallToolRequest, in cell) (*mcp.CallToolResult, any, error) {
	if answered, result, out, err := s.answered(ctx, req); answered {
		return result, out, err
	}
	space, err := s.in(ctx, in.Space)
	if err != nil {
		return failure(err), nil, nil
	}
	if in.Context == "" {
		in.Context = "main"
	}
	events, err := s.API.RunCell(ctx, space, in.Context, client.CellRequest{
		Language: in.Language, Code: in.Code, TimeoutMS: int64(in.Timeout), Agent: s.agent(req.Session), WaitSeconds: waitsFor,
	})
	if err != nil {
		return failure(err), nil, nil
	}
	return s.tell(ctx, req, space, events)
}

func (s *session) fileTools(server *mcp.Server) {
	type file struct {
		where
		Path string `json:"path" jsonschema:"of a file of the space, relative to its top"`
	}
	type reading struct {
		file
		Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, or base64 for bytes that are no text"`
	}
	add(server, "read_file", "Read a file", "Reads a file of the space.", true, false,
		func(ctx context.Context, req *mcp.CallToolRequest, in reading) (*mcp.CallToolResult, any, error) {
			operation := map[string]any{"type": run.OpReadFile, "path": in.Path}
			if in.Encoding != "" {
				operation["encoding"] = in.Encoding
			}
			return s.operate(ctx, req, in.Space, operation)
		})
	type writing struct {
		file
		Content   string `json:"content"`
		Encoding  string `json:"encoding,omitempty" jsonschema:"utf-8 or base64"`
		Overwrite bool   `json:"overwrite,omitempty" jsonschema:"replace a file that is there; else the call fails"`
	}
	add(server, "write_file", "Write a file", "Writes a file of the space, with the folders above it.", false, true,
		func(ctx context.Context, req *mcp.CallToolRequest, in writing) (*mcp.CallToolResult, any, error) {
			operation := map[string]any{"type": run.OpCreateFile, "path": in.Path, "content": in.Content, "overwrite": in.Overwrite}
			if in.Encoding != "" {
				operation["encoding"] = in.Encoding
			}
			return s.operate(ctx, req, in.Space, operation)
		})
	type edit struct {
		Old string `json:"old" jsonschema:"the text to replace, as it stands in the file; its first occurrence is replaced"`
		New string `json:"new"`
	}
	type editing struct {
		file
		Edits []edit `json:"edits" jsonschema:"in their order; all are made or none"`
	}
	add(server, "edit_file", "Edit a file", "Replaces texts in a file of the space.", false, true,
		func(ctx context.Context, req *mcp.CallToolRequest, in editing) (*mcp.CallToolResult, any, error) {
			edits := make([]map[string]string, len(in.Edits))
			for i, e := range in.Edits {
				edits[i] = map[string]string{"oldContent": e.Old, "newContent": e.New}
			}
			return s.operate(ctx, req, in.Space, map[string]any{"type": run.OpEditFile, "path": in.Path, "edits": edits})
		})
	add(server, "delete_file", "Delete a file", "Deletes a file of the space.", false, true,
		func(ctx context.Context, req *mcp.CallToolRequest, in file) (*mcp.CallToolResult, any, error) {
			return s.operate(ctx, req, in.Space, map[string]any{"type": run.OpDeleteFile, "path": in.Path})
		})
	type listing struct {
		where
		Path      string `json:"path,omitempty" jsonschema:"a folder of the space; its top if absent"`
		Recursive bool   `json:"recursive,omitempty"`
	}
	add(server, "list_files", "List files", "Lists a folder of the space.", true, false,
		func(ctx context.Context, _ *mcp.CallToolRequest, in listing) (*mcp.CallToolResult, any, error) {
			space, err := s.in(ctx, in.Space)
			if err != nil {
				return failure(err), nil, nil
			}
			folder := path.Clean("/" + in.Path)[1:]
			if folder == "" {
				folder = "."
			}
			found, err := s.API.Files(ctx, space, folder, in.Recursive)
			if err != nil {
				return failure(err), nil, nil
			}
			var text strings.Builder
			for _, e := range found.Entries {
				fmt.Fprintf(&text, "%s\t%d\t%s\n", e.Type, e.Size, e.Path)
			}
			if found.Truncated {
				text.WriteString("There are more; list a folder below.\n")
			}
			return said(text.String(), "The folder is empty."), map[string]any{"space_id": space, "listing": found}, nil
		})
	add(server, "read_artifact", "Read an artifact", "Reads what a call has shown beside its output, such as a picture.", true, false,
		func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
			Artifact string `json:"artifact_id"`
		}) (*mcp.CallToolResult, any, error) {
			return s.artifact(ctx, id.Artifact(in.Artifact))
		})
}

// maxPicture is the largest artifact for a model, in bytes.
const maxPicture = 4 << 20

// artifact answers with an artifact: a picture as a picture, a text as a text.
func (s *session) artifact(ctx context.Context, a id.Artifact) (*mcp.CallToolResult, any, error) {
	doc, err := s.API.Artifact(ctx, a)
	if err != nil {
		return failure(err), nil, nil
	}
	tooLarge := fault.New(fault.Exhausted, "artifact_too_large", "the artifact has more than %d bytes; read it over the API", maxPicture)
	if doc.Size != nil && *doc.Size > maxPicture {
		return failure(tooLarge), nil, nil
	}
	content, err := s.API.ArtifactContent(ctx, a)
	if err != nil {
		return failure(err), nil, nil
	}
	defer content.Close()
	raw, err := io.ReadAll(io.LimitReader(content, maxPicture+1))
	switch {
	case err != nil:
		return failure(err), nil, nil
	case len(raw) > maxPicture:
		return failure(tooLarge), nil, nil
	case strings.HasPrefix(doc.Media, "image/") && doc.Media != "image/svg+xml":
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: raw, MIMEType: doc.Media}}}, nil, nil
	case !utf8.Valid(raw):
		return failure(fault.New(fault.Invalid, "artifact_not_text", "the artifact is of the type %s, which is neither a text nor a picture",
			doc.Media)), nil, nil
	}
	text, _ := tool.Excerpt(string(raw), maxText, "Read the rest over the API.")
	return said(text, "The artifact is empty."), nil, nil
}

// said returns an answer with a text, or with none if the text is empty.
func said(text, none string) *mcp.CallToolResult {
	if text == "" {
		text = none
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func (s *session) spaceTools(server *mcp.Server) {
	type creation struct {
		Name    string `json:"name,omitempty"`
		Runtime string `json:"runtime,omitempty" jsonschema:"auto, nano (milliseconds, no native programs) or heavy (any program)"`
		Policy  string `json:"policy,omitempty" jsonschema:"restrictive, standard or permissive"`
		TTL     int64  `json:"ttl_seconds,omitempty"`
	}
	add(server, "create_space", "Make a space", "Makes another isolated space with files of its own. Most work needs only the session's "+
		"space, which "+
		"makes itself.", false, false, func(ctx context.Context, _ *mcp.CallToolRequest, in creation) (*mcp.CallToolResult, any, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		made, err := s.create(ctx, client.SpaceRequest{Name: in.Name, Runtime: in.Runtime, Policy: in.Policy, TTLSeconds: in.TTL})
		if err != nil {
			return failure(err), nil, nil
		}
		return said("space_id: "+string(made), ""), map[string]any{"space_id": made}, nil
	})
	add(server, "list_spaces", "List spaces", "Lists the living spaces.", true, false,
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			found, err := s.API.Spaces(ctx, client.SpaceFilter{Page: client.Page{Limit: 100}})
			if err != nil {
				return failure(err), nil, nil
			}
			var text strings.Builder
			for _, space := range found.Spaces {
				fmt.Fprintf(&text, "%s\t%s\t%s\t%s\n", space.ID, space.Name, space.Status, space.Tier)
			}
			return said(text.String(), "There are no spaces."), nil, nil
		})
	add(server, "destroy_space", "Destroy a space", "Destroys a space and its files, for good.", false, true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
			Space string `json:"space_id"`
		}) (*mcp.CallToolResult, any, error) {
			gone, err := s.named(ctx, in.Space)
			if err == nil {
				_, err = s.API.DestroySpace(ctx, gone)
			}
			if err != nil {
				return failure(err), nil, nil
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.space == gone {
				s.space = ""
			}
			return said("The space is destroyed.", ""), nil, nil
		})
}

func (s *session) runTools(server *mcp.Server) {
	type named struct {
		Run string `json:"run_id"`
	}
	add(server, "wait_run", "Wait for a run", "Waits until a run has ended or a person is asked, at most five minutes.", true, false,
		func(ctx context.Context, req *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
			if answered, result, out, err := s.answered(ctx, req); answered {
				return result, out, err
			}
			return s.wait(ctx, req, id.Run(in.Run))
		})
	add(server, "show_run", "Show a run", "Shows what a run has done, as it is now.", true, false,
		func(ctx context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
			found, err := s.API.Run(ctx, id.Run(in.Run))
			if err != nil {
				return failure(err), nil, nil
			}
			out := outcome{Space: found.Space, Run: found.ID, Status: string(found.Status)}
			var text []string
			for _, e := range found.Result.Events {
				text = append(text, out.add(e))
			}
			return said(strings.Join(text, "\n"), out.Status), out, nil
		})
	add(server, "cancel_run", "End a run", "Ends a run that is under way or waits.", false, true,
		func(ctx context.Context, _ *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
			if _, err := s.API.CancelRun(ctx, id.Run(in.Run), "the client of the Model Context Protocol ended it"); err != nil {
				return failure(err), nil, nil
			}
			return said("The run is cancelled.", ""), nil, nil
		})
	add(server, "search", "Search messages", "Searches what people and agents have said in rooms.", true, false,
		func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
			Words string `json:"words" jsonschema:"with spaces between; every one has to be found"`
			Limit int    `json:"limit,omitempty"`
		}) (*mcp.CallToolResult, any, error) {
			found, err := s.API.Search(ctx, client.SearchRequest{Words: in.Words, Limit: in.Limit})
			if err != nil {
				return failure(err), nil, nil
			}
			var text strings.Builder
			for _, f := range found.Results {
				fmt.Fprintf(&text, "%s %s: %s\n", f.CreatedAt.Format(time.RFC3339), f.Sender, f.Excerpt)
			}
			return said(text.String(), "Nothing was found."), nil, nil
		})
}

// polls is the interval between checks of a run while a call waits for it.
const polls = 200 * time.Millisecond

// wait answers with the end of a run, or with the question that it waits for. It waits at most waitsFor seconds.
func (s *session) wait(ctx context.Context, req *mcp.CallToolRequest, of id.Run) (*mcp.CallToolResult, any, error) {
	late, stop := s.Clock.NewTimer(waitsFor * time.Second)
	defer stop()
	for {
		found, err := s.API.Run(ctx, of)
		if err != nil {
			return failure(err), nil, nil
		}
		goesOn := found.Status == run.Queued || found.Status == run.Running
		if waits := pending(found.Result); waits != "" && !goesOn { // after an answer the run continues a moment later
			a, err := s.API.Approval(ctx, id.Approval(waits))
			goesOn = err == nil && a.Status != policy.Pending && a.Status != policy.Held
		}
		if goesOn {
			again, stop := s.Clock.NewTimer(polls)
			select {
			case <-again:
				continue
			case <-ctx.Done():
				stop()
				return failure(ctx.Err()), nil, nil
			case <-late:
				stop()
			}
		}
		return s.tell(ctx, req, found.Space, found.Result)
	}
}
