-- A monitor asks for the leases of its workspace. Only a grant to one writes the index; without them it is empty.
--
-- +goose Up

set local lock_timeout = '5s';

create index lease_workspace on lease (workspace_id) where workspace_id is not null;
