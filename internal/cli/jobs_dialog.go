package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"lessor"
	"lessor/client"
	"lessor/internal/table"
)

// jobText is a text for a job.
type jobText struct {
	job  lessor.JobID
	text string
}

func jobTextArgs(_ *cobra.Command, args []string) (jobText, error) {
	id, err := parseID[lessor.JobID]("job", args[0])
	return jobText{id, args[1]}, err
}

func (a *app) jobsAnswerCommand() *cobra.Command {
	var question string
	cmd := &cobra.Command{
		Use: "answer ID ANSWER", Short: "Answer the question of a job that waits",
		Example: "  lessor jobs answer 0196a1b2-… yes",
	}
	cmd.Flags().StringVar(&question, "question", "", "answer this question `ID` only (default: the one it asks now)")
	cmd.RunE = show(a, jobTextArgs, func(c *client.Client, ctx context.Context, t jobText) (lessor.Job, error) {
		id, err := questionOf(ctx, c, t.job, question)
		if err != nil {
			return lessor.Job{}, err
		}
		return c.Answer(ctx, t.job, id, t.text)
	}, func(t *table.Table, j lessor.Job, _ time.Time) {
		t.Row(fmt.Sprintf("answered %q; the job is %s", j.Question.Text, j.State))
	})
	return cmd
}

func (a *app) jobsMessageCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "message ID TEXT", Short: "Send a message to a job",
		Example: "  lessor jobs message 0196a1b2-… 'stop after this chapter'",
	}
	cmd.Flags().StringVar(&key, "key", "", "the same message with the same `KEY` again is not sent twice")
	cmd.RunE = show(a, jobTextArgs, func(c *client.Client, ctx context.Context, t jobText) (lessor.Message, error) {
		if key == "" {
			return c.Message(ctx, t.job, t.text)
		}
		return c.MessageOnce(ctx, t.job, key, t.text)
	}, func(t *table.Table, m lessor.Message, _ time.Time) {
		t.Row(fmt.Sprintf("sent as number %d; the job's worker receives it within 2 s, if it has one", m.Seq))
	})
	return cmd
}

// questionOf returns the id of a question: the one that was named, or else what the job asks now.
func questionOf(
	ctx context.Context, c *client.Client, job lessor.JobID, named string,
) (lessor.QuestionID, error) {
	if named != "" {
		return parseID[lessor.QuestionID]("question", named)
	}
	j, err := c.Job(ctx, job)
	if err == nil && j.Question == nil {
		err = refusedError{errors.New("the job has asked nothing: `lessor jobs message` sends it a message")}
	}
	if err != nil {
		return lessor.QuestionID{}, err
	}
	return j.Question.ID, nil
}
