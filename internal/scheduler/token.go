package scheduler

import (
	"context"
	"encoding/binary"
	"time"

	"lessor"
	"lessor/internal/rules"
)

// Tokens returns all access tokens, newest first.
func (s *Scheduler) Tokens(ctx context.Context) (tokens []Token, err error) {
	err = s.view(ctx, "load tokens", func(v View) (err error) {
		tokens, err = v.Tokens(ctx)
		return err
	})
	return tokens, err
}

// SaveToken stores a token.
func (s *Scheduler) SaveToken(ctx context.Context, c Caller, t Token) error {
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		p.audit(c, "token.created", "token/"+t.ID.String(), nil, map[string]any{
			"name": t.Name, "role": t.Role, "tenantId": t.Tenant, "expiresAt": t.ExpiresAt,
		})
		return p.tx.SaveToken(ctx, t)
	})
}

// DeleteToken ends a token.
func (s *Scheduler) DeleteToken(ctx context.Context, c Caller, id lessor.TokenID) error {
	return s.change(ctx, c, func(ctx context.Context, p *pass) error {
		found, err := DropToken(ctx, p.tx, id)
		if err == nil && !found {
			return lessor.ErrTokenNotFound
		}
		p.audit(c, "token.deleted", "token/"+id.String(), nil, nil)
		return err
	})
}

// The sessions of one token are one setting, which goes with the token.
func sessionsName(id lessor.TokenID) string { return "sessions/" + id.String() }

// BeginSession stores a session that began with a token, and how long it lasts.
func (s *Scheduler) BeginSession(ctx context.Context, id lessor.TokenID, key [32]byte, life time.Duration) error {
	return s.changeSessions(ctx, id, func(all []rules.Session, now lessor.Instant) []rules.Session {
		return rules.BeginSession(all, rules.Session{Key: key, Until: now.Add(life)}, now)
	})
}

// EndSession forgets a session. One that is not there is no error.
func (s *Scheduler) EndSession(ctx context.Context, id lessor.TokenID, key [32]byte) error {
	return s.changeSessions(ctx, id, func(all []rules.Session, _ lessor.Instant) []rules.Session {
		return rules.EndSession(all, key)
	})
}

// changeSessions decides under the gate, so that two nodes do not overwrite each other's.
func (s *Scheduler) changeSessions(
	ctx context.Context, id lessor.TokenID, fn func([]rules.Session, lessor.Instant) []rules.Session,
) error {
	return s.change(ctx, Caller{}, func(ctx context.Context, p *pass) error {
		if err := p.gate(ctx); err != nil {
			return err
		}
		raw, err := p.tx.Setting(ctx, sessionsName(id))
		if err != nil {
			return err
		}
		return p.tx.SaveSetting(ctx, sessionsName(id), encodeSessions(fn(decodeSessions(raw), p.now)))
	})
}

// Session returns until when a session lasts; false if there is none.
func (s *Scheduler) Session(
	ctx context.Context, id lessor.TokenID, key [32]byte,
) (until lessor.Instant, found bool, err error) {
	err = s.view(ctx, "load sessions", func(v View) error {
		raw, err := v.Setting(ctx, sessionsName(id))
		for _, one := range decodeSessions(raw) {
			if one.Key == key {
				until, found = one.Until, true
			}
		}
		return err
	})
	return until, found, err
}

// sessionSize is the length of a session in the setting: key and end.
const sessionSize = 32 + 8

// encodeSessions returns nil for none, which removes the setting.
func encodeSessions(all []rules.Session) (raw []byte) {
	for _, one := range all {
		raw = append(raw, one.Key[:]...)
		raw = binary.BigEndian.AppendUint64(raw, uint64(one.Until))
	}
	return raw
}

func decodeSessions(raw []byte) (all []rules.Session) {
	for ; len(raw) >= sessionSize; raw = raw[sessionSize:] {
		until := lessor.Instant(binary.BigEndian.Uint64(raw[32:]))
		all = append(all, rules.Session{Key: [32]byte(raw[:32]), Until: until})
	}
	return all
}

// DropToken deletes a token and the sessions that began with it.
func DropToken(ctx context.Context, tx Tx, id lessor.TokenID) (found bool, err error) {
	if found, err = tx.DeleteToken(ctx, id); err != nil {
		return found, err
	}
	return found, tx.SaveSetting(ctx, sessionsName(id), nil)
}
