package httpapi

import (
	"errors"
	"net/http"
	"time"

	"lessor"
)

type health struct {
	Status string `json:"status"`
}

// live says that the process answers.
func (c *call) live() error { return c.answer(http.StatusOK, health{"live"}) }

// ready says whether requests can be answered. Anybody may ask, so a fault's detail is not told.
func (c *call) ready() error {
	err := c.api.scheduler.Ready()
	var e *lessor.Error
	switch {
	case err == nil && c.api.tokens.Loaded():
		return c.answer(http.StatusOK, health{"ready"})
	case err == nil:
		return errNoBook
	case errors.As(err, &e) && e.Code == lessor.CodeUnavailable:
		return e
	}
	return &lessor.Error{Code: lessor.CodeUnavailable, Detail: "not ready", RetryAfter: time.Second}
}

func (c *call) metrics() error {
	c.api.telemetry.Handler().ServeHTTP(c.w, c.r)
	return nil
}

func (c *call) describe() error {
	c.w.Header().Set("Content-Type", "application/json")
	_, _ = c.w.Write(c.api.document)
	return nil
}
