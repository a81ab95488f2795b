package chaos

import (
	"debug/elf"
	endian "encoding/binary"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

// clock sets the wall clock of one running server; its monotonic clock stays real. A Go program reads the time without
// libc, through a pointer to the kernel's clock_gettime, so no preloaded library can change it. The test acts as a
// debugger does: it writes ahead into the process, in place of a function that runs only at the start, and turns the
// pointer to it.
type clock struct {
	*testing.T
	s      *server
	memory *os.File // of the process
	offset int64    // where the process has the seconds that are added
}

// ahead calls the kernel's clock_gettime, and adds an offset to what it says of CLOCK_REALTIME.
var ahead = []byte{
	0x57,                   // push rdi             which clock
	0x56,                   // push rsi             where the seconds go
	0x48, 0x83, 0xec, 0x08, // sub rsp, 8           alignment
	0xff, 0x15, 0x1c, 0, 0, 0, // call [rip+0x1c]   the kernel's function
	0x48, 0x83, 0xc4, 0x08, // add rsp, 8
	0x5e,       // pop rsi
	0x5f,       // pop rdi
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne end                          not CLOCK_REALTIME, which is 0
	0x48, 0x8b, 0x0d, 0x13, 0, 0, 0, // mov rcx, [rip+0x13]   the offset
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3,                // end: ret
	0, 0, 0, 0, 0, 0, 0, // then the address of the kernel's function, and the offset, of 8 bytes each
}

func newClock(t *testing.T, s *server) *clock {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the code that changes a process's clock is for amd64")
	}
	program, err := elf.Open(binary)
	must(t, err)
	defer program.Close()
	symbols, err := program.Symbols()
	must(t, err)
	find := func(name string) elf.Symbol {
		i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("this Go has no %s", name)
		}
		return symbols[i]
	}
	pointer, place := find("runtime.vdsoClockgettimeSym"), find("runtime.vdsoauxv")
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", s.cmd.Process.Pid), os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { _ = memory.Close() })
	kernel := make([]byte, 8)
	_, err = memory.ReadAt(kernel, int64(pointer.Value))
	must(t, err)
	code := slices.Concat(ahead, kernel, make([]byte, 8))
	if uint64(len(code)) > place.Size || place.Value%8 != 0 {
		t.Fatalf("no room for %d bytes in the %d of %s at %#x", len(code), place.Size, place.Name, place.Value)
	}
	_, err = memory.WriteAt(code, int64(place.Value))
	must(t, err)
	_, err = memory.WriteAt(endian.LittleEndian.AppendUint64(nil, place.Value), int64(pointer.Value))
	must(t, err)
	return &clock{t, s, memory, int64(place.Value) + int64(len(ahead)+8)}
}

// step sets the clock to the machine's plus d, which is whole seconds.
func (c *clock) step(d time.Duration) {
	c.Helper()
	_, err := c.memory.WriteAt(endian.LittleEndian.AppendUint64(nil, uint64(d/time.Second)), c.offset)
	must(c.T, err)
	resp, err := http.Get("http://" + c.s.addr + "/health/live")
	must(c.T, err)
	must(c.T, resp.Body.Close())
	says, err := http.ParseTime(resp.Header.Get("Date"))
	must(c.T, err)
	if off := time.Until(says) - d; off < -10*time.Second || off > 2*time.Second {
		c.Fatalf("the server's clock is ahead by %v, want %v", time.Until(says), d)
	}
}
