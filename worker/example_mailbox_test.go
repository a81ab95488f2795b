package worker_test

import (
	"context"
	"fmt"
	"time"

	"lessor/worker"
)

// A consumer of a mailbox: what succeeds is acknowledged, what fails is given back, and what fails five times is a
// dead letter.
func Example_mailbox() {
	ctx := context.Background()
	box := worker.NewMemory(worker.MemoryConfig{})
	for _, city := range []string{"Bergen", "Atlantis"} {
		if _, err := box.Send(ctx, []byte(city), nil); err != nil {
			fmt.Println(err)
		}
	}
	for {
		messages, err := box.Receive(ctx, 1, time.Minute, 0)
		if err != nil || len(messages) == 0 {
			break
		}
		m := messages[0]
		if string(m.Body()) == "Atlantis" {
			fmt.Printf("delivery %d: %s is not on the map\n", m.Deliveries(), m.Body())
			err = m.Nack(ctx, 0)
		} else {
			fmt.Printf("%s: rain\n", m.Body())
			err = m.Acknowledge(ctx)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	dead, err := box.DeadLetters(ctx, 10)
	if err != nil {
		fmt.Println(err)
	}
	for _, d := range dead {
		fmt.Printf("dead letter: %s\n", d.Body)
	}
	// Output:
	// Bergen: rain
	// delivery 1: Atlantis is not on the map
	// delivery 2: Atlantis is not on the map
	// delivery 3: Atlantis is not on the map
	// delivery 4: Atlantis is not on the map
	// delivery 5: Atlantis is not on the map
	// dead letter: Atlantis
}

// Beats of the work extend the message; without them another worker gets it.
func ExampleLeaseExtender() {
	ctx := context.Background()
	box := worker.NewMemory(worker.MemoryConfig{})
	if _, err := box.Send(ctx, []byte("resize 3 pictures"), nil); err != nil {
		fmt.Println(err)
	}
	messages, err := box.Receive(ctx, 1, time.Minute, 0)
	if err != nil {
		fmt.Println(err)
	}
	var hb worker.Heartbeat
	extender := worker.NewLeaseExtender(worker.LeaseExtenderConfig{})
	func() {
		detach, err := extender.Attach(ctx, messages[0], &hb)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer detach()
		for n := range 3 {
			fmt.Println("picture", n+1)
			hb.Beat()
		}
	}()
	if err := messages[0].Acknowledge(ctx); err != nil {
		fmt.Println(err)
	}
	extensions, _ := extender.Counts()
	fmt.Println("extensions:", extensions)
	// Output:
	// picture 1
	// picture 2
	// picture 3
	// extensions: 1
}
