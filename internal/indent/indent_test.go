package indent

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzIndentIsThatOfTheStandardLibrary(f *testing.F) {
	for _, raw := range []string{
		`{}`, `[]`, `null`, ` "a\"\\" `, `{"a":[],"b":{ },"c":[1, -2.5e3,{"d":true}],"":"é]}"}`, `[[[]],[{}],"x,y:z"]`,
		"[\n1\t,\r2 ]",
	} {
		f.Add([]byte(raw), "    ")
	}
	f.Fuzz(func(t *testing.T, raw []byte, prefix string) {
		if !json.Valid(raw) {
			return
		}
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSpace(raw), prefix, "  "); err != nil {
			return
		}
		if got, whole := JSON(raw, prefix, want.Len()); !whole || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%q is indented as\n%s\nwant\n%s", raw, got, want.Bytes())
		}
		if want.Len() > 0 {
			got, whole := JSON(raw, prefix, want.Len()-1)
			if whole || !bytes.HasPrefix(want.Bytes(), got) {
				t.Errorf("%q with a byte less is indented as\n%s\nwhole: %v", raw, got, whole)
			}
		}
	})
}

func TestDeepNestingCostsNoMoreThanTheLimit(t *testing.T) {
	deep := strings.Repeat("[", 990) + "[]" + strings.Repeat(",[]", 80_000) + strings.Repeat("]", 990)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, whole := JSON([]byte(deep), "", 256<<10)
	runtime.ReadMemStats(&after)
	if whole || len(text) > 256<<10 {
		t.Errorf("%d bytes, whole: %v; want at most 256 KiB of it", len(text), whole)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("%d bytes of memory were taken, want at most 8 MiB", used)
	}
}

func TestCutLeavesWholeCharacters(t *testing.T) {
	for limit := range 12 {
		if text, _ := JSON([]byte(`"ééééé"`), "", limit); !utf8.Valid(text) || len(text) > limit {
			t.Errorf("limit %d: %q", limit, text)
		}
	}
}
