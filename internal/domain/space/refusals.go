package space

import (
	"strconv"

	"agentbox/internal/domain/fault"
)

// The refusals of a space's files. A driver answers with a fault of the same code whose message names the path and the numbers, so
// errors.Is finds it.
var (
	// ErrInvalidPath refuses a path that CleanPath does not take.
	ErrInvalidPath = fault.New(fault.Invalid, "invalid_path", "the path is not one inside a space")
	// ErrFileNotFound means that the path names nothing.
	ErrFileNotFound = fault.New(fault.NotFound, "file_not_found", "there is no such file")
	// ErrWithheld means that a person brought the file in and policy keeps it from code.
	ErrWithheld = fault.New(fault.Denied, "file_withheld", "the file is withheld from code")
	// ErrFileExists refuses to make a file that is there already, without Overwrite.
	ErrFileExists = fault.New(fault.Conflict, "file_exists", "the file exists; set overwrite to replace it")
	// ErrNotAFile refuses a directory, pipe, socket or device where a file is wanted.
	ErrNotAFile = fault.New(fault.Conflict, "not_a_file", "the path does not name a file")
	// ErrNotADirectory refuses a path that goes through, or ends at, something that is not a directory where one is wanted.
	ErrNotADirectory = fault.New(fault.Conflict, "not_a_directory", "the path does not name a directory")
	// ErrLink refuses a path that is a symbolic link or goes through one: from outside, links made inside are not followed.
	ErrLink = fault.New(fault.Denied, "link_refused", "the path goes through a symbolic link")
	// ErrMount refuses a path that goes through a mount point, another file system or a kernel link.
	ErrMount = fault.New(fault.Denied, "mount_refused", "the path leaves the space's file system")
	// ErrFileTooLarge refuses content beyond what the action permits.
	ErrFileTooLarge = fault.New(fault.Exhausted, "file_too_large", "the file is larger than permitted")
	// ErrQuota refuses a write that would take the space beyond its disk limit.
	ErrQuota = fault.New(fault.Exhausted, "quota_exceeded", "the space's disk limit is reached")
	// ErrTreeTooDeep refuses a tree of folders that is too deep to be measured.
	ErrTreeTooDeep = fault.New(fault.Exhausted, "tree_too_deep", "the folders are nested too deeply")
	// ErrFolderTooLarge refuses a folder with too many entries to look at all of them.
	ErrFolderTooLarge = fault.New(fault.Exhausted, "folder_too_large", "the folder holds too many entries")
	// ErrArchiveTooLarge refuses an archive with too many entries or bytes, or that unpacks to far more than it is.
	ErrArchiveTooLarge = fault.New(fault.Exhausted, "archive_too_large", "the archive is too large")
	// ErrArchiveInvalid refuses an archive that cannot be read, or that holds entries which do not belong into a space.
	ErrArchiveInvalid = fault.New(fault.Invalid, "archive_invalid", "the archive cannot be taken")
	// ErrEditNotFound means that the text which an edit replaces is not in the file.
	ErrEditNotFound = fault.New(fault.Conflict, "edit_not_found", "the text to replace is not in the file")
	// ErrNotText refuses to treat content as text that is not UTF-8.
	ErrNotText = fault.New(fault.Conflict, "not_text", "the file is not UTF-8 text")
	// ErrFileChanged means that code in the space changed the file during the call.
	ErrFileChanged = fault.New(fault.Conflict, "file_changed", "the file changed during the call; try again")
	// ErrFileBusy means that a program in the space holds the file in a way that would keep the caller waiting.
	ErrFileBusy = fault.New(fault.Conflict, "file_busy", "a program in the space holds the file; try again when it has ended")
	// ErrSnapshotNotFound means that a space does not keep such a snapshot, or no longer.
	ErrSnapshotNotFound = fault.New(fault.NotFound, "snapshot_not_found", "the space keeps no such snapshot")
	// ErrSnapshotTooLarge refuses to make a snapshot of more than is permitted.
	ErrSnapshotTooLarge = fault.New(fault.Exhausted, "snapshot_too_large", "the files are too many or too large for a snapshot")
	// ErrFilesMissing means that the files of a space are not on this host: another daemon of the same log made them on its own.
	ErrFilesMissing = fault.New(fault.NotFound, "space_files_missing", "the files of the space are not on this host")
	// ErrWatchedGone ends a watch whose folder went away.
	ErrWatchedGone = fault.New(fault.NotFound, "watched_folder_removed", "the watched folder is gone")
	// ErrWatchLarge refuses or ends the watch of a folder that holds too much.
	ErrWatchLarge = fault.New(fault.Exhausted, "watch_too_large",
		"the folder holds more than %d entries, or folders nested deeper than %d; watch a folder in it, or without what its folders hold",
		MaxWatchEntries, MaxWatchDepth)
	// ErrSnapshotDamaged means that the disk has changed or lost stored content.
	ErrSnapshotDamaged = fault.New(fault.Internal, "snapshot_damaged", "the snapshot cannot be used")
	// ErrRewindIncomplete means that files are on their way between two snapshots and could be brought to neither.
	ErrRewindIncomplete = fault.New(fault.Unavailable, "rewind_incomplete", "the files lie between two snapshots")
	// ErrDiskFull means that the host's disk is full.
	ErrDiskFull = fault.New(fault.Unavailable, "disk_full", "the disk that holds the data directory is full").
			With("free space on it, or have what nothing names removed with: agentbox gc")
)

// shown quotes a path for an error so that nothing in it can pretend to be more text.
func shown(p string) string {
	if r := []rune(p); len(r) > maxShownPathRune {
		p = string(r[:maxShownPathRune]) + "..."
	}
	return strconv.QuoteToASCII(p)
}
