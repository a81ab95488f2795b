package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// contract checks answers against the OpenAPI document, and remembers which it saw.
type contract struct {
	doc     *openapi3.T
	matcher *http.ServeMux // finds the route of a request, apart from the code under test

	mu   sync.Mutex
	seen map[string]bool // "GET /path 200", "GET /path job_not_found"
}

// theContract is shared by all tests of the package but TestEveryAnswerKeepsTheContract, which counts.
var theContract = newContract()

func newContract() *contract {
	c := &contract{matcher: http.NewServeMux(), seen: map[string]bool{}}
	table := routes(defaultPayloadLimit)
	for _, rt := range table {
		c.matcher.Handle(rt.method+" "+rt.path, http.NotFoundHandler())
	}
	doc, err := openapi3.NewLoader().LoadFromData(closed(openAPI(table, "test")))
	if err != nil {
		panic(err)
	}
	c.doc = doc
	return c
}

// closed returns a stricter document, by which an answer with an unknown field is invalid. For clients it is valid.
func closed(document []byte) []byte {
	var doc map[string]any
	if err := json.Unmarshal(document, &doc); err != nil {
		panic(err)
	}
	for _, s := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
		s.(map[string]any)["additionalProperties"] = false
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

// check fails unless the document allows this answer to this request.
func (c *contract) check(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	body := w.Body.Bytes()
	var problem struct{ Code string }
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/problem") {
		if err := json.Unmarshal(body, &problem); err != nil {
			t.Errorf("%s %s: a problem that is not JSON: %s", r.Method, r.URL, body)
		}
	}
	_, pattern := c.matcher.Handler(r)
	method, path, _ := strings.Cut(pattern, " ")
	if !isClean(r.URL.EscapedPath()) || pattern == "" || method != r.Method {
		if problem.Code == "" && r.Method != http.MethodHead {
			t.Errorf("%s %s: %d without a problem document", r.Method, r.URL, w.Code)
		}
		return
	}
	answer := problem.Code
	if answer == "" {
		answer = strconv.Itoa(w.Code)
	}
	c.mu.Lock()
	c.seen[pattern+" "+answer] = true
	c.mu.Unlock()
	item := c.doc.Paths.Value(path)
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r, Route: &routers.Route{
				Spec: c.doc, Path: path, PathItem: item, Method: method,
				Operation: item.GetOperation(method),
			},
		},
		Status: w.Code, Header: w.Header(), Body: io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, ExcludeResponseBody: opaque(w)},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), in); err != nil {
		t.Errorf("%s %s: the answer %d %s is not in the document: %v", r.Method, r.URL, w.Code,
			body[:min(len(body), 500)], err)
	}
}

// opaque answers are not JSON; their type is all that the document says of them.
func opaque(w *httptest.ResponseRecorder) bool {
	return !strings.Contains(w.Header().Get("Content-Type"), "json")
}

func TestDocumentIsValidOpenAPI31(t *testing.T) {
	s := start(t)
	w := s.call("GET", "/openapi.json", "")
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Errorf("validate: %v", err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s, want 3.1", doc.OpenAPI)
	}
	table := routes(defaultPayloadLimit)
	operations := 0
	for _, item := range doc.Paths.Map() {
		operations += len(item.Operations())
	}
	if operations != len(table) {
		t.Errorf("the document has %d operations, the table %d routes", operations, len(table))
	}
	ids := map[string]bool{}
	for i := range table {
		id := operationID(&table[i])
		if ids[id] {
			t.Errorf("two operations are called %s", id)
		}
		ids[id] = true
	}
}

// Each field that bounds speaks of must exist, or a misspelt line would say nothing.
func TestBoundsAreOfFieldsThatExist(t *testing.T) {
	for name := range bounds {
		component, property, _ := strings.Cut(name, ".")
		s := theContract.doc.Components.Schemas[component]
		if s == nil || s.Value.Properties[property] == nil {
			t.Errorf("bounds has %s, which is no field of the document", name)
		}
	}
}
