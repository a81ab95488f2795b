package lessor_test

import (
	"errors"
	"fmt"

	"lessor"
)

// A refusal is the same value in the server and in its callers, however often it was wrapped, and a denial is not an
// error.
func Example() {
	err := fmt.Errorf("complete the job: %w", lessor.ErrLeaseNotFound)
	if errors.Is(err, lessor.ErrLeaseNotFound) {
		fmt.Println("another worker may have the job:", lessor.CodeOf(err))
	}
	denial := lessor.Denial{Code: lessor.NoCapacity, Reason: "No capacity", RetryAfterMS: 1500}
	fmt.Printf("%s: ask again in %d ms\n", denial.Reason, denial.RetryAfterMS)
	// Output:
	// another worker may have the job: lease_not_found
	// No capacity: ask again in 1500 ms
}
