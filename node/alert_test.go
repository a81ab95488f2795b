package node

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"lessor"
	"lessor/internal/alert"
)

// TestAlertReachesTheWebhookSigned raises an alert on a node whose webhook is on this machine.
func TestAlertReachesTheWebhookSigned(t *testing.T) {
	type delivery struct {
		signature string
		body      []byte
	}
	got := make(chan delivery, 2)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the delivery: %v", err)
		}
		got <- delivery{r.Header.Get("X-Lessor-Signature"), body}
	}))
	defer hook.Close()
	cfg := Config{Data: t.TempDir(), Listen: "127.0.0.1:0"}
	cfg.Alerts.Webhook, cfg.Alerts.WebhookSecret, cfg.Alerts.AllowHosts = hook.URL, "a-long-secret",
		[]string{"127.0.0.1"}
	n, err := Open(t.Context(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	if err := n.scheduler.Raise(ctx, lessor.Alert{
		Kind: lessor.AlertHung, Subject: "job",
		Message: "it hangs",
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-got:
		var a lessor.Alert
		if err := json.Unmarshal(d.body, &a); err != nil || a.Kind != lessor.AlertHung || a.Message != "it hangs" {
			t.Errorf("delivered %s, %v; want the alert", d.body, err)
		}
		if want := alert.Signature("a-long-secret", d.body); d.signature != want {
			t.Errorf("signed %q, want %q", d.signature, want)
		}
	case <-time.After(60 * time.Second):
		t.Error("the alert was not delivered in a minute")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("run: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}
