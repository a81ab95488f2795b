package cron

import "testing"

func TestZonesThatDependOnTheMachineAreRefused(t *testing.T) {
	for _, name := range []string{
		"UTC", "Etc/GMT+5", "GMT0", "EST5EDT", "NZ-CHAT", "America/Port-au-Prince", "America/Argentina/Buenos_Aires",
	} {
		if !NamesZone(name) {
			t.Errorf("%s is refused", name)
		}
	}
	for _, name := range []string{
		"Local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "Europe//Berlin",
		"./Europe/Berlin", "Europe/./Berlin", "Europe/Berlin/", "/Europe/Berlin", "zone.tab",
	} {
		if NamesZone(name) {
			t.Errorf("%s is taken for the name of a zone", name)
		}
	}
}
