package snapshots

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"io"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
)

// Archive writes the files of a stored snapshot as a tar.gz file, in the order of their paths, with at most limit bytes of content. It
// leaves out what may refuses, links that point outside, and names that another system could read as a path, because no space could begin
// with them. It returns how many entries it left out.
func (p *Past) Archive(ctx context.Context, root event.Digest, to io.Writer, limit int64, may func(rel string) bool) (omitted int,
	err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.load(ctx); err != nil {
		return 0, err
	}
	defer p.packs.rest()
	kept, err := p.find(root)
	if err != nil {
		return 0, err
	}
	if kept.Bytes > limit {
		return 0, fault.New(fault.Exhausted, space.ErrArchiveTooLarge.Code, "the snapshot holds %d bytes; an archive of it takes at most %d",
			kept.Bytes, limit)
	}
	zipped := gzip.NewWriter(to)
	c := carrier{ctx: ctx, packs: p.packs, to: tar.NewWriter(zipped), may: may, left: limit}
	if err := c.folder(".", root); err != nil {
		return c.omitted, err
	}
	if err := c.to.Close(); err != nil {
		return c.omitted, err
	}
	return c.omitted, zipped.Close()
}

// carrier writes an archive.
type carrier struct {
	ctx     context.Context
	packs   *packs
	to      *tar.Writer
	may     func(rel string) bool
	left    int64 // bytes of content that may still come
	omitted int
}

func (c *carrier) folder(rel string, d event.Digest) error {
	entries, err := c.packs.folder(d)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.entry(beneath.Join(rel, e.name), e); err != nil {
			return err
		}
	}
	return nil
}

func (c *carrier) entry(rel string, e entry) error {
	if !beneath.Portable(rel) || !c.may(rel) || e.kind == isLink && !beneath.StaysInside(rel, e.target) {
		c.omitted++
		return nil
	}
	h := &tar.Header{Name: rel, Mode: int64(e.mode), Format: tar.FormatPAX}
	switch e.kind {
	case isFolder:
		h.Typeflag, h.Name = tar.TypeDir, rel+"/"
		if err := c.to.WriteHeader(h); err != nil {
			return err
		}
		return c.folder(rel, e.digest)
	case isLink:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.target, 0o777
		return c.to.WriteHeader(h)
	}
	raw, err := c.packs.read(e.digest, c.left)
	if err != nil {
		return err
	}
	c.left -= int64(len(raw))
	h.Typeflag, h.Size = tar.TypeReg, int64(len(raw))
	if err := c.to.WriteHeader(h); err != nil {
		return err
	}
	_, err = c.to.Write(raw)
	return err
}
