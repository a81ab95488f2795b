-- The id of a lease tells the seq of its job, by which its row is found while it lives and when it has ended. Two indexes less for every job.
--
-- +goose Up

set local lock_timeout = '5s';

alter table lease drop constraint lease_pkey;
alter table lease drop constraint lease_seq_key;
alter table lease add primary key (seq);
drop index done_lease;
