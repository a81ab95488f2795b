-- A lease, and the record of each attempt, tell with which token it was taken: its name, its id, and whether it is bound to the tenant.
-- null is what the release before granted, without noting it. The columns are added without a rewrite, whatever the number of rows.
--
-- Ids of leases no longer rise: lists go by when a lease was granted. A node of the release before sorts held locks meanwhile.
--
-- +goose Up

set local lock_timeout = '5s';

alter table lease add column taker text, add column token uuid, add column bound boolean not null default false;
alter table attempt add column taker text;
alter table done add column taker text;

drop index lease_locked;
create index lease_locked on lease (issued_at, seq) where lock_key is not null;
