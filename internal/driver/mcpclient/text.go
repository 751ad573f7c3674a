package mcpclient

import (
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// text returns what a model reads of an answer: all that is text, in order, and of anything else what it is.
func text(parts []sdk.Content) string {
	lines := make([]string, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case *sdk.TextContent:
			lines = append(lines, p.Text)
		case *sdk.ImageContent:
			lines = append(lines, fmt.Sprintf("[an image of the type %.100q with %d bytes is not shown]", p.MIMEType, len(p.Data)))
		case *sdk.AudioContent:
			lines = append(lines, fmt.Sprintf("[a sound of the type %.100q with %d bytes is not shown]", p.MIMEType, len(p.Data)))
		case *sdk.ResourceLink:
			lines = append(lines, fmt.Sprintf("[resource %.200q: %.2000q]", p.Name, p.URI))
		case *sdk.EmbeddedResource:
			switch {
			case p.Resource == nil:
			case p.Resource.Blob != nil:
				lines = append(lines, fmt.Sprintf("[resource %.2000q of the type %.100q with %d bytes is not shown]", p.Resource.URI,
					p.Resource.MIMEType, len(p.Resource.Blob)))
			default:
				lines = append(lines, p.Resource.Text)
			}
		default:
			lines = append(lines, "[something of an unknown type is not shown]")
		}
	}
	return strings.Join(lines, "\n")
}
