package redis

import (
	_ "embed"
	"strconv"

	"github.com/redis/go-redis/v9"

	"lessor/worker"
)

// The scripts, each of which is one change.
var (
	//go:embed scripts/prelude.lua
	preludeText string
	//go:embed scripts/send.lua
	sendText string
	//go:embed scripts/receive.lua
	receiveText string
	//go:embed scripts/acknowledge.lua
	acknowledgeText string
	//go:embed scripts/nack.lua
	nackText string
	//go:embed scripts/return.lua
	returnText string
	//go:embed scripts/extend.lua
	extendText string
	//go:embed scripts/dead.lua
	deadText string

	sendScript        = script(sendText)
	receiveScript     = script(receiveText)
	acknowledgeScript = script(acknowledgeText)
	nackScript        = script(nackText)
	returnScript      = script(returnText)
	extendScript      = script(extendText)
	deadScript        = script(deadText)
)

func script(text string) *redis.Script {
	return redis.NewScript("local most = " + strconv.Itoa(worker.MaxDeliveries) + "\n" + preludeText + text)
}
