-- Definitions, circuits and held locks are listed newest first.
--
-- +goose Up

drop index definition_tenant;
drop index definition_module;
create index definition_created on definition (created_at, id);
create index definition_tenant on definition (tenant, created_at, id);
create index definition_module on definition (module, created_at, id) where module <> '';

drop index circuit_tenant;
create index circuit_opened on circuit (opened_at, definition);
create index circuit_tenant on circuit (tenant, opened_at, definition);

-- Only a grant that takes a lock writes it.
create index lease_locked on lease (n) where lock_key is not null;
