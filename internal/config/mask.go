package config

import (
	"net/url"
	"strings"
)

const masked = "*****"

// shown returns a value as it may be shown: secrets and passwords are hidden.
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

// MaskURL hides the passwords of a URL, so that it can be shown. What cannot be read as a URL is hidden whole, but for a file's name.
func MaskURL(s string) string {
	if strings.HasPrefix(s, "sqlite:") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return masked
	}
	q := u.Query()
	for name := range q {
		if strings.Contains(strings.ToLower(name), "password") {
			q.Set(name, masked)
			u.RawQuery = q.Encode()
		}
	}
	if _, set := u.User.Password(); set {
		u.User = url.UserPassword(u.User.Username(), masked)
	}
	return strings.ReplaceAll(u.String(), url.QueryEscape(masked), masked)
}
