package node

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lessor"
	"lessor/client"
)

// proxyName is the host name in the files of deploy/proxy.
const proxyName = "lessor.example.com"

// TestDocumentedProxiesPassStreamsAndLongPolls runs nginx and HAProxy with the files of deploy/proxy, and checks that
// docs/operations.md shows these files.
func TestDocumentedProxiesPassStreamsAndLongPolls(t *testing.T) {
	docs, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		program, file string
		command       func(dir, file string) []string
		edit          func(dir, listen string) []string // pairs: a text of the file, and its replacement
	}{
		{"nginx", "nginx.conf", nginxCommand, func(dir, listen string) []string {
			return []string{
				"443 ssl", listen + " ssl", "/etc/ssl/lessor.pem", dir + "/lessor.pem",
				"/etc/ssl/lessor.key", dir + "/lessor.pem",
			}
		}},
		{
			"haproxy", "haproxy.cfg", func(_, file string) []string { return []string{"-db", "-f", file} },
			func(dir, listen string) []string {
				return []string{"bind :443", "bind " + listen, "/etc/ssl/lessor.pem", dir + "/lessor.pem"}
			},
		},
	} {
		t.Run(tt.program, func(t *testing.T) {
			raw, err := os.ReadFile("../deploy/proxy/" + tt.file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(docs), "\n"+string(raw)+"```\n") {
				t.Errorf("docs/operations.md does not show the present deploy/proxy/%s", tt.file)
			}
			program := findProxy(t, tt.program)
			n, server := serveBehind(t)
			dir, listen := t.TempDir(), freeAddress(t)
			pool := certificate(t, dir+"/lessor.pem")
			text := strings.NewReplacer(append(tt.edit(dir, listen), "127.0.0.1:5377", server)...).Replace(string(raw))
			file := filepath.Join(dir, tt.file)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			runProxy(t, listen, program, tt.command(dir, file)...)
			checkThroughProxy(t, n, &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: pool},
				DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, listen)
				},
			}})
		})
	}
}

// checkThroughProxy makes calls, reads a stream, waits in a request and logs in, all through a proxy.
func checkThroughProxy(t *testing.T, n *Node, web *http.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	secret, err := os.ReadFile(n.TokenFile())
	if err != nil {
		t.Fatal(err)
	}
	connect := func(token string) *client.Client {
		c, err := client.New(client.Config{Server: "https://" + proxyName, Token: token, HTTP: web})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if _, err := connect("").Status(ctx); lessor.CodeOf(err) != lessor.CodeUnauthenticated {
		t.Errorf("without a token: %v, want unauthenticated", err)
	}
	token := strings.TrimSpace(string(secret))
	c := connect(token)
	if _, err := c.Status(ctx); err != nil {
		t.Fatalf("with a token: %v", err)
	}
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+proxyName+"/api/system/scheduler/events", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	stream, err := web.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	granted := make(chan error, 1)
	go func() {
		grants, _, err := c.Request(ctx, lessor.LeaseRequest{WorkerID: new("w"), WaitMS: new(int64(30_000))})
		if err == nil && len(grants) != 1 {
			err = fmt.Errorf("%d grants, want one", len(grants))
		}
		granted <- err
	}()
	lines := bufio.NewScanner(stream.Body)
	if !lines.Scan() { // the first line is a comment, before there are events
		t.Fatalf("the proxy does not pass on the stream: %v", lines.Err())
	}
	job, err := n.Submit(ctx, "x", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	passed := false
	for !passed && lines.Scan() {
		passed = strings.Contains(lines.Text(), job.ID.String())
	}
	if !passed {
		t.Errorf("the proxy does not pass on the event of the job: %v", lines.Err())
	}
	if err := <-granted; err != nil {
		t.Errorf("a request that waits: %v", err)
	}
	web.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	login, err := web.PostForm("https://"+proxyName+"/login", url.Values{"token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	_ = login.Body.Close()
	if cs := login.Cookies(); len(cs) != 1 || !cs[0].Secure {
		t.Errorf("the login gets %d with the cookies %v, want one that is Secure", login.StatusCode, cs)
	}
}

// serveBehind serves a node that accepts calls to proxyName from a proxy on this machine.
func serveBehind(t *testing.T) (n *Node, address string) {
	t.Helper()
	cfg := testConfig(t)
	cfg.Listen, cfg.HTTP.Hosts, cfg.HTTP.TrustedProxies = freeAddress(t), []string{proxyName}, []string{"127.0.0.1"}
	return serve(t, cfg)
}

// freeAddress returns a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

// certificate writes a key and a certificate for proxyName, and returns a pool that trusts it.
func certificate(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{proxyName}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return pool
}

// findProxy returns the path of a program, or skips the test if it is not installed. `make test` installs it where it
// can.
func findProxy(t *testing.T, name string) string {
	t.Helper()
	for _, place := range []string{name, "/usr/sbin/" + name} {
		if path, err := exec.LookPath(place); err == nil {
			return path
		}
	}
	t.Skipf("%s is not installed", name)
	return ""
}

// nginxCommand returns the arguments with which nginx includes the file in its http block, and writes everything into
// dir.
func nginxCommand(dir, file string) []string {
	temp := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temp += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	text := fmt.Sprintf("daemon off;\nworker_processes 1;\npid %s/pid;\nevents {}\n"+
		"http {\naccess_log off;\n%sinclude %s;\n}\n",
		dir, temp, file)
	if os.Geteuid() == 0 {
		text = "user root;\n" + text // root owns the folder
	}
	main := filepath.Join(dir, "main.conf")
	_ = os.WriteFile(main, []byte(text), 0o600) // nginx reports a missing file
	return []string{"-p", dir, "-e", "stderr", "-c", main}
}

// runProxy runs a proxy until the test ends, and waits until it listens.
func runProxy(t *testing.T, listen, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	output := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", listen)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-ended:
			ended <- nil
			t.Fatalf("%s ended: %s", program, output)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not listen after 30 s: %v", program, err)
		}
	}
}
