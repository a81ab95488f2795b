-- Ticks and open alerts are keyed by their tenant too: a definition's id may pass to another tenant once it is deleted, and its ticks stay.
-- Who has seen an alert is kept with it. A million ticks take about five seconds.
--
-- +goose Up

create table tick_of_tenant (
	definition text    not null,
	tick_at    integer not null,
	tenant     blob    not null,
	outcome    text    not null,
	reason     text    not null,
	run        blob,
	from_at    integer not null,
	to_at      integer not null,
	count      integer not null,
	primary key (tenant, definition, tick_at)
) without rowid, strict;
insert into tick_of_tenant (definition, tick_at, tenant, outcome, reason, run, from_at, to_at, count)
	select definition, tick_at, tenant, outcome, reason, run, from_at, to_at, count from tick order by tenant, definition, tick_at;
drop table tick;
alter table tick_of_tenant rename to tick;
create index tick_at on tick (tick_at);
create index tick_run on tick (run) where outcome = 'circuitOpen';
create index tick_run_definition on tick (definition, run) where outcome = 'circuitOpen';
create index tick_run_tenant on tick (tenant, run) where outcome = 'circuitOpen';

drop index alert_subject;
create unique index alert_subject on alert (kind, subject, tenant) where cleared_at = 0;
alter table alert add column acknowledged_at integer not null default 0;
alter table alert add column acknowledged_by text;
