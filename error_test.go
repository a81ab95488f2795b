package lessor_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"lessor"
)

func TestRefusalsMatchByCode(t *testing.T) {
	mine := &lessor.Error{Code: lessor.CodeLeaseNotFound, Detail: "it expired", EndedReason: "expired"}
	for _, c := range []struct {
		name   string
		err    error
		target error
		want   bool
	}{
		{"the same code", mine, lessor.ErrLeaseNotFound, true},
		{"the same code, wrapped", fmt.Errorf("beat: %w", mine), lessor.ErrLeaseNotFound, true},
		{"another code", mine, lessor.ErrWorkerMismatch, false},
		{"a fault", io.ErrUnexpectedEOF, lessor.ErrLeaseNotFound, false},
		{"a fault as target", mine, io.ErrUnexpectedEOF, false},
	} {
		if got := errors.Is(c.err, c.target); got != c.want {
			t.Errorf("%s: errors.Is(%v, %v) is %v, want %v", c.name, c.err, c.target, got, c.want)
		}
	}
}

func TestRefusalsOfCallersAllDiffer(t *testing.T) {
	all := []*lessor.Error{
		lessor.ErrLeaseNotFound, lessor.ErrWorkerMismatch, lessor.ErrJobNotFound, lessor.ErrTokenNotFound,
		lessor.ErrConflict, lessor.ErrUnavailable,
		lessor.ErrRateLimited, lessor.ErrForbidden, lessor.ErrInvalidRequest, lessor.ErrInvalidValue,
	}
	for i, a := range all {
		for j, b := range all {
			if got := errors.Is(a, b); got != (i == j) {
				t.Errorf("errors.Is(%v, %v) is %v", a, b, got)
			}
		}
	}
}

func TestCodeOfLooksThroughWrapping(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want lessor.Code
	}{
		{"nil", nil, ""},
		{"a fault", io.EOF, ""},
		{"a refusal", lessor.ErrConflict, lessor.CodeConflict},
		{"a wrapped refusal", fmt.Errorf("a: %w", fmt.Errorf("b: %w", lessor.ErrConflict)), lessor.CodeConflict},
		{"a refusal among others", errors.Join(io.EOF, lessor.ErrForbidden), lessor.CodeForbidden},
	} {
		if got := lessor.CodeOf(c.err); got != c.want {
			t.Errorf("the code of %s is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestErrorTextNamesCodeDetailAndFirstField(t *testing.T) {
	for want, e := range map[string]*lessor.Error{
		"conflict":                {Code: lessor.CodeConflict},
		"conflict: it is running": {Code: lessor.CodeConflict, Detail: "it is running"},
		"invalid_value: no (a: b)": {
			Code: lessor.CodeInvalidValue, Detail: "no",
			Fields: []lessor.FieldError{{Field: "a", Message: "b"}, {Field: "c", Message: "d"}},
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
}
