-- What attempts print, in pieces that are written once and removed whole. An attempt is known by its fence, because its
-- number returns after it was given back. Takes no time: the table is new.
--
-- +goose Up

create table output (
	job    blob    not null,
	fence  integer not null,
	stream text    not null,
	start  integer not null,
	data   blob    not null,
	primary key (job, fence, stream, start)
) strict;

replace into setting (name, value) values ('schema', cast('13 10' as blob));
