package app

import "log/slog"

func said(l *slog.Logger, code string) {
	l.Info("it is well said", "code", "well_said", "n", 1)
	l.Info("it is well said", "code", "well_said")
	l.LogAttrs(nil, slog.LevelError, "also well", slog.String("code", "also_well"))
	l.Warn("no code", "n", 1)
	slog.Error("a code that is not literal", "code", code)
	l.Debug("another line", "code", "well_said")
	l.Info("not snake_case", "code", "Well-Said")
}
