-- A lease, and the record of each attempt, tell with which token it was taken: its name, its id, and whether it is bound to the tenant.
-- null is what the release before granted, without noting it. The columns are added without a rewrite, whatever the number of rows.
--
-- The end of a lease is found by the seq in its id, as on PostgreSQL: an index by ids that are random would be a page to write for
-- each job that ends. To drop it takes about a tenth of a second for a million jobs.
--
-- +goose Up

alter table lease add column taker text;
alter table lease add column token blob;
alter table lease add column bound integer not null default 0;
alter table attempt add column taker text;
alter table done add column taker text;

drop index done_lease;
