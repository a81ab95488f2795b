package storetest

import (
	"lessor"
	"lessor/internal/rules"
	"lessor/internal/scheduler"
)

func policies(b *bed) {
	save := func(p rules.Policy) {
		b.Helper()
		b.update(func(tx scheduler.Tx) error {
			if err := tx.Gate(b.Context()); err != nil {
				return err
			}
			return tx.SavePolicy(b.Context(), p)
		})
	}
	read := func() []rules.Policy {
		b.Helper()
		return readTwice(b, "policies", func(v scheduler.View) ([]rules.Policy, error) {
			return v.Policies(b.Context())
		})
	}
	b.same("policies before any is set", read(), nil)
	all := []rules.Policy{ // in the order of tenant and class
		{Class: "batch", Weight: 7},
		{Tenant: acme, Weight: 2, Cap: 30, Paused: true, Name: "Acme, Inc."},
		{Tenant: acme, Class: "Zeta", Weight: 1},
		{Tenant: acme, Class: "batch", Weight: 10_000, Cap: 1},
		{Tenant: globex, Weight: 1},
	}
	for _, i := range []int{3, 0, 4, 2, 1} {
		save(all[i])
	}
	b.same("policies", read(), all)
	all[1], all[3].Cap, all[3].Paused = rules.Policy{Tenant: acme, Weight: 1}, 5, true
	save(all[3])
	save(all[1])
	b.reopen()
	b.same("policies after a change and a restart", read(), all)
}

func handlers(b *bed) {
	save := func(hs ...lessor.Handler) {
		b.Helper()
		b.update(func(tx scheduler.Tx) error {
			for _, h := range hs {
				if err := tx.SaveHandler(b.Context(), h); err != nil {
					return err
				}
			}
			return nil
		})
	}
	read := func() []lessor.Handler {
		b.Helper()
		return readTwice(b, "handlers", func(v scheduler.View) ([]lessor.Handler, error) {
			return v.Handlers(b.Context())
		})
	}
	b.same("handlers", read(), nil)
	all := []lessor.Handler{
		{HandlerID: "Zebra", Schema: []byte(`{ "type" : "object","type":"object" }`), UpdatedAt: 3},
		{HandlerID: "mail.send", Schema: []byte(`true`), UpdatedAt: 1},
		{HandlerID: "mail_send", Schema: []byte(`{"pattern":"\u0000"}`), UpdatedAt: 2},
	}
	save(all[2], all[0], all[1])
	b.same("handlers", read(), all)
	all[1].Schema, all[1].UpdatedAt = []byte(`false`), 9
	save(all[1], lessor.Handler{HandlerID: "Zebra"}, lessor.Handler{HandlerID: "never"})
	b.same("handlers after a change and a removal", read(), all[1:])
}
