package config

import (
	"net/url"
	"regexp"
	"strings"
)

// Rows returns each key, its value and its source. Secrets are masked.
func (l Loaded) Rows() (rows [][]string) {
	for _, k := range Keys() {
		value := k.shown(k.value(&l.Config))
		if value == "" {
			value = `""`
		}
		rows = append(rows, []string{k.Name, value, l.Source(k.Name)})
	}
	return rows
}

const masked = "*****"

// shown returns a value with secrets and passwords hidden.
func (k Key) shown(value string) string {
	switch {
	case value == "":
		return value
	case k.Secret:
		return masked
	case k.url:
		return MaskURL(value)
	}
	return value
}

// secretWords are in the names of query parameters that are secrets.
var secretWords = regexp.MustCompile(`(?i)password|secret|token`)

// MaskURL hides the passwords of a URL. A value that is not a URL is hidden completely, except for a sqlite: path.
func MaskURL(s string) string {
	if strings.HasPrefix(s, "sqlite:") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return masked
	}
	q := u.Query()
	for name := range q {
		if secretWords.MatchString(name) {
			q.Set(name, masked)
			u.RawQuery = q.Encode()
		}
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), masked)
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(masked), masked)
}
