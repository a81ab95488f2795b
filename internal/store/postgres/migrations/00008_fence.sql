-- fence is larger than every fence that was given before the database went back to an older state, as far as a node knew; the next are larger still.
-- The table has one row: it takes no time.
--
-- +goose Up

set local lock_timeout = '5s';

alter table serving add column fence bigint not null default 0;
