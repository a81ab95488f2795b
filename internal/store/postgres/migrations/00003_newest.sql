-- Definitions, circuits and held locks are listed newest first. Nobody needs the indexes that go: a node of the release before lists
-- slower until it is gone.
--
-- +goose Up

set local lock_timeout = '5s';

drop index definition_tenant;
drop index definition_module;
create index definition_created on definition (created_at, id);
create index definition_tenant on definition (tenant, created_at, id);
create index definition_module on definition (module, created_at, id) where module <> '';

drop index circuit_busy;
create index circuit_busy on circuit (opened_at, definition) where state not in ('', 'closed') or failures <> 0;

-- Only a grant that takes a lock writes it.
create index lease_locked on lease (id) where lock_key is not null;
