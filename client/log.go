package client

import (
	"context"
	"net/http"
)

type logLevel struct {
	Level string `json:"level"`
}

// LogLevel returns the least level that the server logs. It needs an admin token.
func (c *Client) LogLevel(ctx context.Context) (string, error) {
	var answer logLevel
	_, err := c.read(ctx, admin+"/log-level", nil, maxObject, &answer)
	return answer.Level, err
}

// SetLogLevel changes the least level that the server logs, until it stops: debug, info, warn or error. Of several
// nodes it is the one that answers.
func (c *Client) SetLogLevel(ctx context.Context, level string) (string, error) {
	var answer logLevel
	_, err := c.do(ctx, call{method: http.MethodPut, path: admin + "/log-level", body: logLevel{level}, safe: true},
		&answer)
	return answer.Level, err
}
