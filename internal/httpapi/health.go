package httpapi

import "net/http"

type health struct {
	Status string `json:"status"`
}

// live says that the process answers.
func (c *call) live() error { return c.answer(http.StatusOK, health{"live"}) }

// ready says whether requests can be answered, and if not, why. Anybody may ask, so a fault's detail is not told.
func (c *call) ready() error {
	if err := c.api.scheduler.Ready(); err != nil {
		return err
	}
	if !c.api.tokens.Loaded() {
		return errNoBook
	}
	return c.answer(http.StatusOK, health{"ready"})
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
