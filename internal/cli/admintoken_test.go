package cli

import "testing"

func TestAdminTokenMatchesTheServerThatWroteIt(t *testing.T) {
	const four, six = "http://127.0.0.1:5377", "http://[::1]:5377"
	for _, tt := range []struct{ address, servers, list, own string }{
		{"127.0.0.1:5377", "http://127.0.0.1:5377", four, four},
		{"127.0.0.1:5377", " http://127.0.0.1:5377/ ", four, four},
		{"127.0.0.1:5377", "127.0.0.1:5377", four, four},
		{"127.0.0.1:5377", "http://localhost:5377", four, four}, // not to what else answers to that name
		{"127.0.0.1:5377", "LOCALHOST:5377", four, four},
		{"127.0.0.1:5377", "http://[::ffff:127.0.0.1]:5377", four, four},
		{"[::1]:5377", "http://[::1]:5377", six, six},
		{"[::1]:5377", "localhost:5377", six, six},
		{"127.0.0.1:80", "http://127.0.0.1", "http://127.0.0.1:80", "http://127.0.0.1:80"},
		{"127.0.0.1:5377", "http://other.example,localhost:5377", "http://other.example," + four, four},
		{"127.0.0.1:5377", "http://127.0.0.1:5378", "http://127.0.0.1:5378", ""},
		{"127.0.0.1:5377", "http://127.0.0.2:5377", "http://127.0.0.2:5377", ""},
		{"127.0.0.1:5377", "http://[::1]:5377", "http://[::1]:5377", ""},
		{"127.0.0.1:5377", "https://127.0.0.1:5377", "https://127.0.0.1:5377", ""},
		{"127.0.0.1:5377", "http://127.0.0.1:5377/other", "http://127.0.0.1:5377/other", ""},
		{"127.0.0.1:5377", "http://localhost.example:5377", "http://localhost.example:5377", ""},
		{"127.0.0.1:5377", "http://127.0.0.1:5377@other.example", "http://127.0.0.1:5377@other.example", ""},
		{"127.0.0.1:5377", "http://other.example:5377", "http://other.example:5377", ""},
		{"10.0.0.1:5377", "http://10.0.0.1:5377", "http://10.0.0.1:5377", ""},
		{"localhost:5377", "http://localhost:5377", "http://localhost:5377", ""},
		{"", four, four, ""},
	} {
		if list, own := (adminToken{address: tt.address}).match(tt.servers); list != tt.list || own != tt.own {
			t.Errorf("a token of %q, servers %q: calls %q, the token goes to %q; want %q, %q",
				tt.address, tt.servers, list, own, tt.list, tt.own)
		}
	}
}
