package mailboxtest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"lessor/worker"
)

// cases are the promises of a mailbox.
var cases = []struct {
	name string
	test func(b *bed)
}{
	{"MessageArrivesAsSent", arrives},
	{"LargestBodyArrives", largest},
	{"EmptyMailboxAnswersNothingAfterTheWait", empty},
	{"SendWakesAReceiver", wakes},
	{"MessageIsHiddenUntilItsVisibilityIsOver", hidden},
	{"VisibilityZeroShowsTheMessageAgainAtOnce", zero},
	{"BatchHasAtMostSoManyAndNoTwins", batch},
	{"AcknowledgedMessageIsGone", acknowledged},
	{"NackedMessageComesBackAfterItsDelay", nacked},
	{"ReturnedMessageComesBackUncounted", returned},
	{"MessageReturnedAtTheLastDeliveryHasItAgain", returnedLast},
	{"ExtendedMessageStaysHidden", extended},
	{"ExtendNeverShortens", notShortened},
	{"OverdueReceiptFailsAtOnce", overdue},
	{"OldReceiptDoesNotTouchTheNewDelivery", oldReceipt},
	{"MessageThatKillsItsWorkersBecomesADeadLetter", killer},
	{"MessageNackedAtTheLastDeliveryBecomesADeadLetter", rejected},
	{"MessageAcknowledgedAtTheLastDeliveryIsGone", lastChance},
	{"ReplyGoesToTheMailboxTheSenderNamed", replied},
	{"WhatIsOutOfBoundsIsRefused", bounds},
	{"FullMailboxRefuses", full},
	{"CloseWakesReceivers", closed},
	{"ContextEndsAWait", cancelled},
	{"ReceiversAtOnceShareTheMessages", shared},
}

// wants fails the test unless err is of that kind.
func (b *bed) wants(err, kind error, what string) {
	b.Helper()
	if !errors.Is(err, kind) {
		b.Fatalf("%s: got error %v, want one that is %q", what, err, kind)
	}
}

func arrives(b *bed) {
	for _, body := range []string{`{"n":1}`, "  spaces and\nlines ", "\x00\xff\xfe bytes \x1b", "<&> ☃", "="} {
		id := b.send(body)[0]
		m := b.one(5)
		if m.ID() != id || string(m.Body()) != body || m.Deliveries() != 1 || m.Receipt() == "" {
			b.Errorf("sent %q as %s; received %q as %s, delivery %d, receipt %q",
				body, id, m.Body(), m.ID(), m.Deliveries(), m.Receipt())
		}
		b.must(m.Acknowledge(b.Context()))
	}
	body := []byte("mine")
	_, err := b.Send(b.Context(), body, nil)
	b.must(err)
	copy(body, "your")
	if m := b.one(5); string(m.Body()) != "mine" {
		b.Errorf("received %q, which the sender wrote after Send", m.Body())
	}
}

func largest(b *bed) {
	for _, body := range [][]byte{
		bytes.Repeat([]byte("x"), b.cfg.MaxBody),
		bytes.Repeat([]byte{0xff}, b.cfg.MaxBody/2),
	} {
		_, err := b.Send(b.Context(), body, nil)
		b.must(err)
		m := b.one(5)
		if !bytes.Equal(m.Body(), body) {
			b.Errorf("a body of %d bytes arrived as %d other bytes", len(body), len(m.Body()))
		}
		b.must(m.Acknowledge(b.Context()))
	}
}

func empty(b *bed) {
	b.none("from an empty mailbox")
	began := time.Now()
	got, err := b.Receive(b.Context(), 1, b.unit, b.units(2))
	if took := time.Since(began); err != nil || len(got) != 0 || took < b.units(2) {
		b.Errorf("%d messages, err %v, after %s; want none after %s", len(got), err, took, b.units(2))
	}
}

func wakes(b *bed) {
	type answer struct {
		messages []worker.Message
		err      error
		took     time.Duration
	}
	answers := make(chan answer, 1)
	began := time.Now()
	go func() {
		got, err := b.Receive(b.Context(), 1, b.unit, b.units(10))
		answers <- answer{got, err, time.Since(began)}
	}()
	b.pass(b.unit)
	id := b.send("wake")[0]
	a := <-answers
	if a.err != nil || len(a.messages) != 1 || a.messages[0].ID() != id || a.took >= b.units(10) {
		b.Errorf("%d messages, err %v, after %s; want the one that was sent after %s",
			len(a.messages), a.err, a.took, b.unit)
	}
}

func hidden(b *bed) {
	id := b.send("a")[0]
	first := b.one(2)
	b.none("while it was hidden")
	b.pass(b.unit)
	b.none("before its visibility was over")
	b.pass(b.unit)
	again := b.one(2)
	if again.ID() != id || again.Deliveries() != 2 || again.Receipt() == first.Receipt() {
		b.Errorf("delivery %d with receipt %q after %q, want the second with a fresh one",
			again.Deliveries(), again.Receipt(), first.Receipt())
	}
}

func zero(b *bed) {
	b.send("a")
	receipts := map[string]bool{}
	for n := 1; n <= worker.MaxDeliveries; n++ {
		m := b.one(0)
		receipts[m.Receipt()] = true
		if m.Deliveries() != n || len(receipts) != n {
			b.Errorf("delivery %d, %d receipts; want %d of each", m.Deliveries(), len(receipts), n)
		}
	}
}

func batch(b *bed) {
	want := b.send(strings.Split("abcdefghijkl", "")...)
	seen := map[string]bool{}
	for len(seen) < len(want) {
		got, err := b.Receive(b.Context(), 5, b.units(60), b.cfg.Late)
		b.must(err)
		if len(got) == 0 || len(got) > 5 {
			b.Fatalf("a batch of %d, want 1 to 5", len(got))
		}
		for _, m := range got {
			if seen[m.ID()] {
				b.Fatalf("message %s was handed out twice", m.ID())
			}
			seen[m.ID()] = true
		}
	}
	b.none("beside all that were sent")
}

func acknowledged(b *bed) {
	b.send("a")
	m := b.one(2)
	b.must(m.Acknowledge(b.Context()))
	b.over(m, "after Acknowledge")
	b.pass(b.units(2) + b.cfg.Late)
	b.none("after it was acknowledged")
}

func extended(b *bed) {
	b.send("a")
	m := b.one(2)
	for range 3 {
		b.pass(b.unit)
		b.must(m.Extend(b.Context(), b.units(2)))
		b.none("while it was extended")
	}
	b.must(m.Acknowledge(b.Context()))
}

func notShortened(b *bed) {
	b.send("a")
	m := b.one(4)
	b.must(m.Extend(b.Context(), b.unit))
	b.must(m.Extend(b.Context(), 0))
	b.pass(b.units(2))
	b.none("after an extension shorter than what was left")
	b.must(m.Acknowledge(b.Context()))
}

func overdue(b *bed) {
	b.send("a")
	m := b.one(1)
	b.pass(b.unit)
	b.over(m, "after its visibility")
	if again := b.one(1); again.Deliveries() != 2 {
		b.Errorf("delivery %d, want 2", again.Deliveries())
	}
}

func oldReceipt(b *bed) {
	b.send("a")
	old := b.one(1)
	b.pass(b.unit)
	m := b.one(4)
	b.over(old, "after the next delivery")
	b.none("after an old receipt was used")
	b.must(m.Acknowledge(b.Context()))
}

func killer(b *bed) {
	ids := b.send("killer")
	for range worker.MaxDeliveries {
		b.dead()
		b.one(1)
		b.pass(b.unit)
	}
	b.none("after its last delivery")
	b.dead(ids...)
	b.none("after it became a dead letter")
	b.dead(ids...)
}

func rejected(b *bed) {
	ids := b.send("rejected")
	for range worker.MaxDeliveries - 1 {
		b.dead()
		b.must(b.one(60).Nack(b.Context(), 0))
	}
	b.must(b.one(60).Nack(b.Context(), b.units(60))) // it has no next delivery to be delayed
	b.none("after its last delivery")
	b.dead(ids...)
}

func lastChance(b *bed) {
	b.send("late")
	for range worker.MaxDeliveries - 1 {
		b.must(b.one(60).Nack(b.Context(), 0))
	}
	m := b.one(60)
	b.must(m.Extend(b.Context(), b.units(60)))
	b.must(m.Acknowledge(b.Context()))
	b.none("after it was acknowledged")
	b.dead()
}

func replied(b *bed) {
	replies := b.cfg.Open(b.T)
	_, err := b.Send(b.Context(), []byte("question"), replies)
	b.must(err)
	m := b.one(5)
	b.must(m.Reply(b.Context(), []byte("answer")))
	b.must(m.Acknowledge(b.Context()))
	answer := (&bed{T: b.T, Mailbox: replies, cfg: b.cfg, unit: b.unit}).one(5)
	if string(answer.Body()) != "answer" {
		b.Errorf("the reply is %q", answer.Body())
	}
	b.must(answer.Acknowledge(b.Context()))

	b.send("no answer wanted")
	m = b.one(5)
	if err := m.Reply(b.Context(), []byte("answer")); !b.cfg.RepliesAnyway {
		b.wants(err, worker.ErrNoReplyTo, "a reply nobody asked for")
	}
	b.must(m.Acknowledge(b.Context()))
	if _, err := b.Send(b.Context(), []byte("question"), struct{ worker.Mailbox }{}); err == nil {
		b.Error("a mailbox of another kind was taken for replies")
	}
}

func full(b *bed) {
	if b.cfg.OpenSmall == nil {
		b.Skip("this mailbox has no length of its own")
	}
	b.Mailbox = b.cfg.OpenSmall(b.T, 2)
	b.send("a", "b")
	_, err := b.Send(b.Context(), []byte("c"), nil)
	b.wants(err, worker.ErrMailboxFull, "a message more than it holds")
	b.must(b.one(5).Acknowledge(b.Context()))
	b.send("c")
}

func cancelled(b *bed) {
	ctx, cancel := context.WithTimeout(b.Context(), b.unit)
	defer cancel()
	began := time.Now()
	if _, err := b.Receive(ctx, 1, b.unit, b.units(10)); err == nil || time.Since(began) >= b.units(10) {
		b.Errorf("err %v after %s, want the context's after %s", err, time.Since(began), b.unit)
	}
}
