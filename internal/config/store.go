package config

import (
	"errors"
	"net/url"
	"strings"
)

// StoreKind is a kind of database.
type StoreKind string

// The kinds of stores.
const (
	SQLite     StoreKind = "sqlite"
	PostgreSQL StoreKind = "postgres"
)

// StoreLocation is the path or the connection URL of a store.
type StoreLocation struct {
	Kind StoreKind
	Path string // of SQLite
	URL  string // of PostgreSQL
}

var (
	errStore       = errors.New("is neither sqlite:PATH nor postgres://USER@HOST/DATABASE")
	errStoreSlash  = errors.New("has two slashes after sqlite:, which are not part of the path; write sqlite:PATH")
	errStoreOption = errors.New("has a ? in the path; options of the database cannot be set here")
)

// ParseStore reads sqlite:PATH or postgres://….
func ParseStore(s string) (StoreLocation, error) {
	if path, ok := strings.CutPrefix(s, "sqlite:"); ok {
		switch {
		case path == "" || strings.ContainsRune(path, 0):
			return StoreLocation{}, errStore
		case strings.HasPrefix(path, "//"):
			return StoreLocation{}, errStoreSlash
		case strings.Contains(path, "?"):
			return StoreLocation{}, errStoreOption
		}
		return StoreLocation{Kind: SQLite, Path: path}, nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || strings.Trim(u.Path, "/") == "" {
		return StoreLocation{}, errStore
	}
	return StoreLocation{Kind: PostgreSQL, URL: s}, nil
}
