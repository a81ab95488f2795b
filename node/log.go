package node

import (
	"context"
	"log/slog"
)

// leveled returns log behind a level of its own, which can be changed while it runs. The level's name was checked.
func leveled(log *slog.Logger, level string) (*slog.Logger, *slog.LevelVar) {
	v := new(slog.LevelVar)
	_ = v.UnmarshalText([]byte(level))
	return slog.New(levelHandler{log.Handler(), v}), v
}

// levelHandler passes on what is at least of its level.
type levelHandler struct {
	slog.Handler
	level *slog.LevelVar
}

func (h levelHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level.Level() && h.Handler.Enabled(ctx, l)
}

func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.level}
}

func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.level}
}
