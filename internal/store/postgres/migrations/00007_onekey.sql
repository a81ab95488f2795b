-- No table has a second index with the key by which its rows are looked up, but partial ones: where the server last saw the table empty, both look alike to the planner, and
-- with the wrong one each look-up reads all of it. What ends or comes due in one millisecond is sorted.
--
-- +goose Up

set local lock_timeout = '5s';

drop index delayed_until;
create index delayed_until on delayed (until);
drop index done_ended;
create index done_ended on done (ended_at);
drop index note_job;
create index note_job on note (job, id);
