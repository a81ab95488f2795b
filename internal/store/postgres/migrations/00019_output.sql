-- What attempts print, in pieces that are written once and removed whole. An attempt is known by its fence, because its
-- number returns after it was given back. Takes no time: the table is new.
--
-- +goose Up

create table output (
	job    uuid   not null,
	fence  bigint not null,
	stream text   not null,
	start  bigint not null,
	data   bytea  not null,
	primary key (job, fence, stream, start)
);

insert into setting (name, value) values ('schema', '19 16'::bytea)
	on conflict (name) do update set value = excluded.value;
