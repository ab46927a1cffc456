-- What a turn or a memory is flagged for, names with spaces between; '' is nothing, NULL was kept before there were flags.
ALTER TABLE turn ADD COLUMN flags text COLLATE "C";
ALTER TABLE memory ADD COLUMN flags text COLLATE "C";
CREATE INDEX turn_flagged ON turn (tenant, space, n) WHERE flags <> '';
CREATE INDEX memory_flagged ON memory (tenant, space, n) WHERE flags <> '';

-- What a person ruled about a memory or an entry: that it is told in spite of its flags, that it is always told.
CREATE TABLE ruling (
    tenant   integer NOT NULL DEFAULT here_tenant(),
    space    integer NOT NULL DEFAULT here_space(),
    id       text COLLATE "C" NOT NULL,
    released smallint NOT NULL,
    pinned   smallint NOT NULL,
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX ruling_pinned ON ruling (tenant, space, id) WHERE pinned = 1;
