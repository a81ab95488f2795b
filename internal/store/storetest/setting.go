package storetest

import (
	"lessor"
	"lessor/internal/scheduler"
)

func settings(b *bed) {
	get := func(name string) (value []byte) {
		b.view(func(v scheduler.View) (err error) {
			value, err = v.Setting(b.Context(), name)
			return err
		})
		return value
	}
	set := func(name string, value []byte) {
		b.update(func(tx scheduler.Tx) error { return tx.SaveSetting(b.Context(), name, value) })
	}
	if got := get("shares"); got != nil {
		b.Fatalf("a setting that was never set is %q", got)
	}
	for _, value := range [][]byte{{0, 1, 255}, []byte("next"), {}} {
		set("shares", value)
		if got := get("shares"); got == nil || string(got) != string(value) {
			b.Fatalf("set to %q, read as %q", value, got)
		}
	}
	set("other", []byte("x"))
	set("shares", nil)
	set("never", nil)
	if got := get("shares"); got != nil {
		b.Fatalf("a setting that was removed is %q", got)
	}
	b.reopen()
	if got := get("other"); string(got) != "x" {
		b.Fatalf("set to x, read after a restart as %q", got)
	}
}

func tokens(b *bed) {
	token := func(n byte, name string) scheduler.Token {
		return scheduler.Token{
			ID: lessor.TokenID{UUID: b.uuid()}, Hash: [32]byte{n}, Name: name, Role: "worker",
			CreatedAt: lessor.Instant(n),
		}
	}
	zero := lessor.TenantID{} // a tenant like others, not the same as none
	old, bound, newest := token(1, "old"), token(2, "bound"), token(3, "newest")
	bound.Tenant, newest.Tenant, newest.ExpiresAt = &acme, &zero, 99
	save := func(t scheduler.Token) error {
		return b.Update(b.Context(), func(tx scheduler.Tx) error { return tx.SaveToken(b.Context(), t) })
	}
	for _, t := range []scheduler.Token{newest, old, bound} {
		b.must(save(t))
	}
	read := func() (got []scheduler.Token) {
		b.view(func(v scheduler.View) (err error) {
			got, err = v.Tokens(b.Context())
			return err
		})
		return got
	}
	b.same("tokens", read(), []scheduler.Token{newest, bound, old})
	old.Name, old.Role = "renamed", "admin"
	b.must(save(old))
	b.same("tokens", read(), []scheduler.Token{newest, bound, old})
	twin := token(4, "twin")
	twin.Hash = old.Hash
	b.wants(save(twin), scheduler.ErrBadCall)
	drop := func(id lessor.TokenID) (was bool) {
		b.update(func(tx scheduler.Tx) (err error) {
			was, err = tx.DeleteToken(b.Context(), id)
			return err
		})
		return was
	}
	if !drop(bound.ID) || drop(bound.ID) || drop(twin.ID) {
		b.Fatal("DeleteToken does not report whether it removed a token")
	}
	b.same("tokens", read(), []scheduler.Token{newest, old})
}
