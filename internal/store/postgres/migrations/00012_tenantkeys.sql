-- Ticks and open alerts are keyed by their tenant too: a definition's id may pass to another tenant once it is deleted, and its ticks stay.
-- Who has seen an alert is kept with it. A million ticks take about two seconds.
--
-- +goose Up

set local lock_timeout = '5s';

alter table tick drop constraint tick_pkey, add primary key (tenant, definition, tick_at);

drop index alert_open;
create unique index alert_open on alert (kind, subject, tenant) where cleared_at = 0;
alter table alert add column acknowledged_at bigint not null default 0, add column acknowledged_by text;
