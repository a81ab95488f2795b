// Package storetest defines what a scheduler.Store must do. The test of each driver calls Run. What is not tested here
// is not promised.
//
// The tests make the moves that the scheduler makes, computed by package rules, and read only through View, so that
// they hold for every driver.
package storetest

import (
	"testing"

	"lessor/internal/scheduler"
)

// Run tests a driver. fresh prepares an empty store and returns a function that opens it. After Close the function is
// called again, and then opens the same store.
func Run(t *testing.T, fresh func(t *testing.T) (open func() scheduler.Store)) {
	for _, c := range []struct {
		name string
		test func(*bed)
	}{
		{"Insert/SpecsComeBackAsSent", specsComeBack},
		{"Insert/PayloadBytesComeBackAsSent", payloadsComeBack},
		{"Insert/LanesKeepTheirNumbers", lanesKeepNumbers},
		{"Insert/SeqsRise", seqsRise},
		{"Insert/OneJobAnID", oneJobAnID},
		{"Insert/OneJobAKey", oneJobAKey},
		{"Move/EveryPairOfPlaces", everyPair},
		{"Move/MissingRowIsErrMoved", missingRowIsErrMoved},
		{"Move/FailureLeavesNothing", failureLeavesNothing},
		{"Move/SwallowedFaultStillFails", swallowedFault},
		{"Move/LockIsHeldOnce", lockHeldOnce},
		{"Move/ManyInOneCall", manyInOneCall},
		{"Move/NotTwiceInOneCall", notTwiceInOneCall},
		{"Move/LikeTheModel", likeTheModel},
		{"Cohort/ComesAndGoes", cohortComesAndGoes},
		{"Cohort/JobIsTakenOnce", cohortJobIsTakenOnce},
		{"Cohort/JobComesBackAlone", cohortJobComesBack},
		{"Cohort/ListedInOrder", cohortListed},
		{"Lease/BeatIsKept", beatIsKept},
		{"Lease/CopiesMayBeChanged", copiesMayBeChanged},
		{"Lease/FoundByRequest", foundByRequest},
		{"Lease/EndIsRemembered", endIsRemembered},
		{"Lease/NotConfusedWithTheNext", notConfusedWithTheNext},
		{"Lease/ListNewestFirst", leaseList},
		{"Lease/OfAWorkspace", leasesOfAWorkspace},
		{"Lease/FailedBeatIsForgotten", failedBeatIsForgotten},
		{"Lock/ReadsLikeStandings", lockReads},
		{"Lock/SoleNodeHasNoOthers", soleNodeHasNoOthers},
		{"Delayed/DueInOrder", dueInOrder},
		{"Delayed/AheadOfAnInstant", waitsAhead},
		{"List/EveryFilter", everyFilter},
		{"List/TenantsOfManyLanes", tenantsOfManyLanes},
		{"List/PagesNeitherRepeatNorLose", pagesNeitherRepeatNorLose},
		{"List/CursorOfAJobThatLeft", cursorOfAJobThatLeft},
		{"Record/HistoryInOrder", historyInOrder},
		{"Record/ReplaysToTheState", replaysToTheState},
		{"Record/LastError", lastError},
		{"Report/Merges", reportsMerge},
		{"Journal/Kept", journalsAreKept},
		{"Journal/Copied", journalsAreCopied},
		{"Output/ComesBackOnce", outputComesBack},
		{"Output/Joined", outputIsJoined},
		{"Output/HasFewRows", outputHasFewRows},
		{"Output/MiddleIsDropped", outputMiddleIsDropped},
		{"Output/Fences", outputFences},
		{"Output/RemovedWithItsJob", outputRemovedWithItsJob},
		{"Dialog/MessagesInOrder", messagesInOrder},
		{"Dialog/MessagesByKey", messagesByKey},
		{"Dialog/AnsweredOnceOrRefused", answeredOnceAlone},
		{"Definition/ComeBackAsSaved", definitionsComeBack},
		{"Definition/PayloadBytesComeBackAsSent", definitionPayloadsComeBack},
		{"Definition/DeletedWithTheirCircuits", deletedDefinitions},
		{"Definition/DueInOrder", dueDefinitions},
		{"Definition/ListInOrder", definitionList},
		{"Tick/ComeBackInOrder", ticksComeBack},
		{"Tick/OneRowEach", oneRowATick},
		{"Tick/Replaced", replacedTicks},
		{"Tick/DecidedOfManyDefinitions", decidedTicks},
		{"Tick/UnderAnOpenCircuit", circuitTicks},
		{"Circuit/WithoutRowIsClosed", circuitsWithoutRow},
		{"Circuit/ListInOrder", circuitLists},
		{"Circuit/EachBlock", eachBlock},
		{"Tenant/PoliciesSaved", policies},
		{"Tenant/HandlersSavedAndRemoved", handlers},
		{"Alert/OneOpenASubject", oneOpenAlert},
		{"Alert/ListNewestFirst", alertLists},
		{"Alert/AuditNewestFirst", auditLists},
		{"Run/EveryFilter", everyRunFilter},
		{"Run/PagesNeitherRepeatNorLose", runPages},
		{"Run/ByTrace", runsByTrace},
		{"Run/StartedAtTheFirstGrant", startedAtFirstGrant},
		{"Run/OpenOldestFirst", openOldestFirst},
		{"Run/AttemptOfALease", attemptOfALease},
		{"Run/LocksInOrder", locksInOrder},
		{"Schedule/FailureLeavesNothing", scheduleFailureLeavesNothing},
		{"Schedule/NothingGivenNothingDone", schedulesOfNothing},
		{"Schedule/PurgeOldestFirst", purgeSchedules},
		{"Setting/SavedAndRemoved", settings},
		{"Token/SavedAndRemoved", tokens},
		{"Purge/LeavesOthersAlone", purgeLeavesOthers},
		{"Purge/FreesTheKey", purgeFreesKey},
		{"Lanes/RemovedAfterANotice", unusedLanesAreRemoved},
		{"Lanes/RegisteredAfterANotice", registeredLaneLosesItsNotice},
		{"Strip/ForgetsWhatIsLarge", stripForgetsWhatIsLarge},
		{"Strip/GoesBackWithTheClock", stripGoesBackWithTheClock},
		{"Serving/KeptWithTheCommit", servingKept},
		{"View/SeesASnapshot", viewSeesSnapshot},
		{"View/NeverHalfATransaction", neverHalf},
		{"View/EachStopsAtTheFirstError", eachStops},
		{"Update/OneAtATime", oneAtATime},
		{"Update/NothingGivenNothingDone", nothingGiven},
		{"Update/ContextEndsTheWaiting", contextEndsWaiting},
		{"Restart/AcknowledgedIsThere", restartKeeps},
		{"Restart/LeasesAndRequestsAreThere", restartKeepsLeases},
		{"Restart/SeqsGoOn", restartSeqs},
		{"Restart/ClosedAnswersUnreachable", closedAnswers},
		{"Backup/StreamsACopy", backupStreams},
		{"Check/NothingWrong", checkFindsNothing},
	} {
		t.Run(c.name, func(t *testing.T) {
			open := fresh(t)
			b := &bed{T: t, open: open, Store: open()}
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(b)
		})
	}
}
