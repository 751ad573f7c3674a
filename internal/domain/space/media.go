package space

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"
)

// MediaBytes is how many bytes MediaOf reads from the beginning of a file.
const MediaBytes = 512

// mediaByName are the media types of files by the last part of their names.
var mediaByName = map[string]string{
	".css": "text/css", ".csv": "text/csv", ".htm": "text/html", ".html": "text/html", ".ics": "text/calendar", ".js": "text/javascript",
	".md": "text/markdown", ".mjs": "text/javascript", ".tsv": "text/tab-separated-values", ".txt": "text/plain", ".xml": "text/xml",

	".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".ico": "image/vnd.microsoft.icon", ".jpeg": DisplayJPEG,
	".jpg": DisplayJPEG, ".png": DisplayPNG, ".svg": DisplaySVG, ".tif": "image/tiff", ".tiff": "image/tiff", ".webp": "image/webp",

	".flac": "audio/flac", ".m4a": "audio/mp4", ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".wav": "audio/wav",
	".mov": "video/quicktime", ".mp4": "video/mp4", ".mpeg": "video/mpeg", ".webm": "video/webm",

	".7z": "application/x-7z-compressed", ".bz2": "application/x-bzip2", ".doc": "application/msword", ".epub": "application/epub+zip",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".gz": "application/gzip",
	".ipynb": "application/x-ipynb+json", ".jar": "application/java-archive", ".json": DisplayJSON, ".jsonl": "application/jsonl",
	".parquet": "application/vnd.apache.parquet", ".pdf": "application/pdf", ".sqlite": "application/vnd.sqlite3",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", ".rtf": "application/rtf",
	".tar": "application/x-tar", ".tgz": "application/gzip", ".toml": "application/toml", ".wasm": "application/wasm",
	".xls": "application/vnd.ms-excel", ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xz": "application/x-xz", ".yaml": "application/yaml", ".yml": "application/yaml", ".zip": "application/zip", ".zst": "application/zstd",

	".eot": "application/vnd.ms-fontobject", ".otf": "font/otf", ".ttf": "font/ttf", ".woff": "font/woff", ".woff2": "font/woff2",
}

// mediaByBytes are the media types of files by their first bytes.
var mediaByBytes = []struct{ begin, media string }{
	{"\x89PNG\r\n\x1a\n", DisplayPNG}, {"\xff\xd8\xff", DisplayJPEG}, {"GIF87a", "image/gif"}, {"GIF89a", "image/gif"},
	{"%PDF-", "application/pdf"}, {"PK\x03\x04", "application/zip"}, {"\x1f\x8b", "application/gzip"},
	{"SQLite format 3\x00", "application/vnd.sqlite3"}, {"\x00asm", "application/wasm"},
}

// MediaOf returns the media type of a file from its name, or else from its first MediaBytes bytes. It is the same on every host. It is a
// guess, and nothing trusts it.
func MediaOf(name string, begin []byte) string {
	if media, ok := mediaByName[strings.ToLower(path.Ext(name))]; ok {
		return media
	}
	for _, m := range mediaByBytes {
		if bytes.HasPrefix(begin, []byte(m.begin)) {
			return m.media
		}
	}
	if n := len(begin); n == MediaBytes { // the last character may be cut
		for cut := 1; cut < utf8.UTFMax && !utf8.Valid(begin); cut++ {
			begin = begin[:n-cut]
		}
	}
	if utf8.Valid(begin) && bytes.IndexByte(begin, 0) < 0 {
		return "text/plain"
	}
	return "application/octet-stream"
}
