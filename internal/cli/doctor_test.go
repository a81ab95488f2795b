package cli

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"lessor/client"
)

func TestClockCheckFromBothSides(t *testing.T) {
	for _, tt := range []struct {
		off time.Duration
		bad bool
	}{
		{0, false},
		{-time.Second, false},
		{time.Second, false},
		{-10 * time.Second, true},
		{10 * time.Second, true},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(tt.off).UTC().Format(http.TimeFormat))
		}))
		c, err := client.New(client.Config{Server: s.URL})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkClock(t.Context(), c); (err != nil) != tt.bad {
			t.Errorf("a clock that is off by %s: %v", tt.off, err)
		}
		c.Close()
		s.Close()
	}
}
