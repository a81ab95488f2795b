package cron

import (
	"regexp"
	"strings"
)

// zoneName is how names of zones are made. The folder of the zones' files has other files, and a path can be written in
// other ways.
var zoneName = regexp.MustCompile(`^[A-Za-z][\w+-]*(/[A-Za-z][\w+-]*)*$`)

// NamesZone reports whether every machine takes a name for the same zone. Others depend on the files of a machine: its
// own zone, and copies of zones in which leap seconds count, or daylight saving has other rules.
func NamesZone(name string) bool {
	switch folder, _, _ := strings.Cut(name, "/"); folder {
	case "Local", "localtime", "posixrules", "posix", "right":
		return false
	}
	return zoneName.MatchString(name)
}
