package config

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes each key, its value and where that came from. Secrets are masked.
func (l Loaded) Print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVALUE\tSOURCE")
	for _, k := range Keys() {
		value := k.shown(k.value(&l.Config))
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", k.Name, value, l.Source(k.Name))
	}
	return t.Flush()
}
