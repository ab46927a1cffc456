-- A space's rows are those with its two numbers, in every table. Nobody writes that condition: whoever looks says where
-- they are (`memplane.tenant`, `memplane.space`), row-level security adds it to every statement, and the columns fill
-- themselves. Without a place there is nothing to see and nowhere to write. Every key begins with both numbers, so that
-- every table can be parted, or distributed, by them.
CREATE FUNCTION here_tenant() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('memplane.tenant', true), '')::integer;
CREATE FUNCTION here_space() RETURNS integer LANGUAGE sql STABLE PARALLEL SAFE
    RETURN nullif(current_setting('memplane.space', true), '')::integer;

-- Names to numbers. A writer holds the row of its space while it writes: one at a time, whichever process it is in.
CREATE TABLE tenant (
    number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name   text COLLATE "C" NOT NULL UNIQUE
);
CREATE TABLE space (
    tenant integer NOT NULL REFERENCES tenant (number),
    number integer GENERATED ALWAYS AS IDENTITY,
    owner  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, number),
    UNIQUE (tenant, owner)
);

-- What a vector gets whenever it is written, always larger, so that a cache sees what changed since it looked. Writers of
-- one space follow each other, so that none is seen late.
CREATE SEQUENCE stamp;

CREATE TABLE ledger (
    tenant         integer NOT NULL DEFAULT here_tenant(),
    space          integer NOT NULL DEFAULT here_space(),
    seq            bigint NOT NULL,
    id             text COLLATE "C" NOT NULL,
    op             text COLLATE "C" NOT NULL,
    recorded       bigint NOT NULL,
    actor          text COLLATE "C" NOT NULL,
    door           text COLLATE "C" NOT NULL,
    session        text COLLATE "C" NOT NULL,
    ref            text COLLATE "C",
    payload_digest bytea NOT NULL,
    digest         bytea NOT NULL,
    position       bigint NOT NULL DEFAULT 0,
    chained_id     text COLLATE "C",
    origin         text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, space, seq),
    UNIQUE (tenant, space, id)
);
CREATE INDEX ledger_by_session ON ledger (tenant, space, session, op) WHERE session <> '';
CREATE INDEX ledger_by_op ON ledger (tenant, space, op) WHERE op = 'forget';
CREATE INDEX ledger_by_ref ON ledger (tenant, space, ref) WHERE ref IS NOT NULL;
CREATE UNIQUE INDEX ledger_by_position ON ledger (tenant, space, position);
CREATE INDEX ledger_decisions ON ledger (tenant, space, seq) WHERE op IN ('forget', 'sweep');

CREATE TABLE payload (
    tenant   integer NOT NULL DEFAULT here_tenant(),
    space    integer NOT NULL DEFAULT here_space(),
    position bigint NOT NULL,
    salt     bytea NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (tenant, space, position)
);

CREATE TABLE tombstone (
    tenant   integer NOT NULL DEFAULT here_tenant(),
    space    integer NOT NULL DEFAULT here_space(),
    id       text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    at       bigint NOT NULL,
    reason   text COLLATE "C" NOT NULL,
    cause    text COLLATE "C",
    PRIMARY KEY (tenant, space, id, position)
);

CREATE TABLE variant (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    id     text COLLATE "C" NOT NULL,
    base   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX variant_by_base ON variant (tenant, space, base);

CREATE TABLE audit (
    tenant  integer NOT NULL DEFAULT here_tenant(),
    space   integer NOT NULL DEFAULT here_space(),
    seq     bigint NOT NULL,
    at      bigint NOT NULL,
    actor   text COLLATE "C" NOT NULL,
    door    text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    action  text COLLATE "C" NOT NULL,
    target  text COLLATE "C",
    outcome text COLLATE "C" NOT NULL,
    detail  text COLLATE "C" NOT NULL,
    digest  bytea NOT NULL,
    PRIMARY KEY (tenant, space, seq)
);

CREATE TABLE meta (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    name   text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, name)
);

CREATE TABLE pinned (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    name   text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    text   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, name)
);
CREATE INDEX pinned_at ON pinned (tenant, space, at);

CREATE TABLE turn (
    tenant       integer NOT NULL DEFAULT here_tenant(),
    space        integer NOT NULL DEFAULT here_space(),
    n            bigint NOT NULL,
    seq          bigint NOT NULL GENERATED ALWAYS AS (n / 256) STORED,
    role         text COLLATE "C" NOT NULL,
    text         text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    conversation text COLLATE "C",
    project      text COLLATE "C",
    speaker      text COLLATE "C",
    within       text COLLATE "C",
    flags        text COLLATE "C",
    PRIMARY KEY (tenant, space, n)
);
CREATE INDEX turn_flagged ON turn (tenant, space, n) WHERE flags <> '';
CREATE INDEX turn_by_time ON turn (tenant, space, at);
CREATE INDEX turn_by_conversation ON turn (tenant, space, conversation, at) WHERE conversation IS NOT NULL;
CREATE INDEX turn_by_project ON turn (tenant, space, project, at) WHERE project IS NOT NULL;
CREATE INDEX turn_by_speaker ON turn (tenant, space, speaker) WHERE speaker IS NOT NULL;

CREATE TABLE memory (
    tenant          integer NOT NULL DEFAULT here_tenant(),
    space           integer NOT NULL DEFAULT here_space(),
    n               bigint NOT NULL,
    id              text COLLATE "C" NOT NULL,
    kind            text COLLATE "C" NOT NULL,
    behavioral      smallint NOT NULL,
    text            text COLLATE "C" NOT NULL,
    seq             bigint NOT NULL,
    start           integer NOT NULL,
    "end"           integer NOT NULL,
    state           text COLLATE "C" NOT NULL,
    tier            text COLLATE "C" NOT NULL,
    tags            text COLLATE "C" NOT NULL,
    key             text COLLATE "C",
    category        text COLLATE "C",
    created         bigint NOT NULL,
    updated         bigint NOT NULL,
    expires         bigint,
    supersedes      text COLLATE "C",
    superseded_by   text COLLATE "C",
    superseded      bigint,
    conversation    text COLLATE "C",
    project         text COLLATE "C",
    turn            bigint,
    quote           text COLLATE "C",
    extractor       text COLLATE "C",
    role            text COLLATE "C",
    subject         text COLLATE "C",
    predicate       text COLLATE "C",
    object          text COLLATE "C",
    claim           text COLLATE "C",
    importance      double precision NOT NULL DEFAULT 0.5,
    confidence      double precision NOT NULL DEFAULT 1.0,
    times           text COLLATE "C" NOT NULL DEFAULT '[]',
    time_from       bigint,
    time_until      bigint,
    embedded        integer,
    within          text COLLATE "C",
    chosen          integer NOT NULL DEFAULT 0,
    passed_over     integer NOT NULL DEFAULT 0,
    leaning         double precision NOT NULL DEFAULT 0.0,
    importance_base double precision,
    flags           text COLLATE "C",
    PRIMARY KEY (tenant, space, n),
    UNIQUE (tenant, space, id)
);
CREATE INDEX memory_flagged ON memory (tenant, space, n) WHERE flags <> '';
CREATE INDEX memory_by_seq ON memory (tenant, space, seq);
CREATE INDEX memory_by_time ON memory (tenant, space, updated);
CREATE INDEX memory_by_brief ON memory (tenant, space, behavioral, updated, n) WHERE state IN ('active', 'contested')
    AND (extractor IS NULL OR (role = 'user' AND (behavioral <> 0 OR tier = 'hot')));
CREATE UNIQUE INDEX memory_by_key ON memory (tenant, space, key) WHERE key IS NOT NULL AND state IN ('active', 'contested');
CREATE INDEX memory_by_key_history ON memory (tenant, space, key, updated) WHERE key IS NOT NULL;
CREATE INDEX memory_by_category ON memory (tenant, space, category, updated) WHERE category IS NOT NULL;
CREATE INDEX memory_by_expiry ON memory (tenant, space, expires) WHERE expires IS NOT NULL;
CREATE INDEX memory_by_supersession ON memory (tenant, space, superseded) WHERE superseded IS NOT NULL;
CREATE INDEX memory_by_conversation ON memory (tenant, space, conversation) WHERE conversation IS NOT NULL;
CREATE INDEX memory_by_project ON memory (tenant, space, project) WHERE project IS NOT NULL;
CREATE INDEX memory_by_predicate ON memory (tenant, space, predicate, updated) WHERE predicate IS NOT NULL;
CREATE INDEX memory_by_subject ON memory (tenant, space, subject, predicate) WHERE subject IS NOT NULL;
CREATE INDEX memory_by_time_told ON memory (tenant, space, time_from) WHERE time_from IS NOT NULL;
CREATE INDEX memory_by_successor ON memory (tenant, space, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_hot ON memory (tenant, space, updated) WHERE tier = 'hot';
CREATE INDEX memory_episodes ON memory (tenant, space, conversation, n) WHERE kind = 'episode';
CREATE INDEX memory_not_embedded ON memory (tenant, space, n) WHERE embedded IS NULL;
CREATE INDEX memory_by_subject_live ON memory (tenant, space, subject, seq DESC, id) WHERE claim IS NOT NULL AND state IN ('active', 'contested');

CREATE TABLE memory_tag (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    tag    text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    PRIMARY KEY (tenant, space, tag, n)
);
CREATE INDEX memory_tag_by_memory ON memory_tag (tenant, space, n);

CREATE TABLE hidden (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    seq    bigint NOT NULL,
    PRIMARY KEY (tenant, space, seq)
);

CREATE TABLE evidence (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    memory text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    id     text COLLATE "C" NOT NULL,
    body   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, memory, seq, id)
);
CREATE INDEX evidence_by_seq ON evidence (tenant, space, seq);

CREATE TABLE cited (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    seq    bigint NOT NULL,
    memory text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, seq, memory)
);
CREATE INDEX cited_by_memory ON cited (tenant, space, memory);

CREATE TABLE untold (
    tenant       integer NOT NULL DEFAULT here_tenant(),
    space        integer NOT NULL DEFAULT here_space(),
    conversation text COLLATE "C" NOT NULL,
    first        bigint NOT NULL,
    last_at      bigint NOT NULL,
    PRIMARY KEY (tenant, space, conversation)
);
CREATE INDEX untold_by_time ON untold (tenant, space, last_at);

CREATE TABLE conflict (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    a      text COLLATE "C" NOT NULL,
    b      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, a, b)
);
CREATE INDEX conflict_by_b ON conflict (tenant, space, b);

CREATE TABLE overruled (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    id     text COLLATE "C" NOT NULL,
    by     text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, by, id)
);

CREATE TABLE purged (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    id     text COLLATE "C" NOT NULL,
    by     text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    entry  text COLLATE "C" NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (tenant, space, by, id)
);
CREATE INDEX purged_by_seq ON purged (tenant, space, seq);

CREATE TABLE access (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    memory text COLLATE "C" NOT NULL,
    count  bigint NOT NULL,
    last   bigint NOT NULL,
    PRIMARY KEY (tenant, space, memory)
);

CREATE TABLE model (
    tenant    integer NOT NULL DEFAULT here_tenant(),
    space     integer NOT NULL DEFAULT here_space(),
    n         integer NOT NULL,
    id        text COLLATE "C" NOT NULL,
    dimension integer NOT NULL,
    PRIMARY KEY (tenant, space, n),
    UNIQUE (tenant, space, id, dimension)
);

CREATE TABLE turn_vector (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stamp  bigint NOT NULL DEFAULT nextval('stamp'),
    n      bigint NOT NULL,
    words  integer NOT NULL,
    asks   smallint NOT NULL,
    model  integer NOT NULL,
    digest bytea NOT NULL,
    vector halfvec,
    PRIMARY KEY (tenant, space, n),
    UNIQUE (tenant, space, stamp)
);
CREATE INDEX turn_vector_stale ON turn_vector (tenant, space, n) WHERE digest = ''::bytea;

CREATE TABLE memory_vector (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stamp  bigint NOT NULL DEFAULT nextval('stamp'),
    id     text COLLATE "C" NOT NULL,
    model  integer NOT NULL,
    digest bytea NOT NULL,
    vector halfvec,
    PRIMARY KEY (tenant, space, id),
    UNIQUE (tenant, space, stamp)
);

CREATE TABLE document (
    tenant       integer NOT NULL DEFAULT here_tenant(),
    space        integer NOT NULL DEFAULT here_space(),
    seq          bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    project      text COLLATE "C",
    media_type   text COLLATE "C" NOT NULL,
    bytes        bigint NOT NULL,
    chars        bigint NOT NULL,
    sections     integer NOT NULL,
    spans        bigint NOT NULL,
    created      bigint NOT NULL,
    updated      bigint NOT NULL,
    status       text COLLATE "C" NOT NULL,
    error        text COLLATE "C",
    distillation text COLLATE "C",
    PRIMARY KEY (tenant, space, seq),
    UNIQUE (tenant, space, id)
);
CREATE INDEX document_by_project ON document (tenant, space, project, updated) WHERE project IS NOT NULL;
CREATE INDEX document_by_time ON document (tenant, space, updated);
CREATE INDEX document_undistilled ON document (tenant, space, seq) WHERE status = 'processing';

CREATE TABLE section (
    tenant       integer NOT NULL DEFAULT here_tenant(),
    space        integer NOT NULL DEFAULT here_space(),
    n            bigint NOT NULL,
    seq          bigint NOT NULL GENERATED ALWAYS AS (n / 1048576) STORED,
    title        text COLLATE "C",
    level        integer NOT NULL,
    path         text COLLATE "C" NOT NULL,
    start        integer NOT NULL,
    "end"        integer NOT NULL,
    distillation text COLLATE "C",
    PRIMARY KEY (tenant, space, n)
);

CREATE TABLE span (
    tenant   integer NOT NULL DEFAULT here_tenant(),
    space    integer NOT NULL DEFAULT here_space(),
    n        bigint NOT NULL,
    seq      bigint NOT NULL GENERATED ALWAYS AS (n / 1048576) STORED,
    section  integer NOT NULL,
    start    integer NOT NULL,
    "end"    integer NOT NULL,
    place    bigint,
    words    integer NOT NULL,
    lead     text COLLATE "C" NOT NULL,
    text     text COLLATE "C" NOT NULL,
    embedded integer,
    PRIMARY KEY (tenant, space, n)
);
CREATE INDEX span_not_embedded ON span (tenant, space, n) WHERE embedded IS NULL;

CREATE TABLE span_vector (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stamp  bigint NOT NULL DEFAULT nextval('stamp'),
    n      bigint NOT NULL,
    model  integer NOT NULL,
    digest bytea NOT NULL,
    vector halfvec,
    PRIMARY KEY (tenant, space, n),
    UNIQUE (tenant, space, stamp)
);

CREATE TABLE collection (
    tenant  integer NOT NULL DEFAULT here_tenant(),
    space   integer NOT NULL DEFAULT here_space(),
    seq     bigint NOT NULL,
    id      text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    project text COLLATE "C",
    ordered smallint NOT NULL,
    created bigint NOT NULL,
    PRIMARY KEY (tenant, space, seq),
    UNIQUE (tenant, space, id)
);

CREATE TABLE member (
    tenant     integer NOT NULL DEFAULT here_tenant(),
    space      integer NOT NULL DEFAULT here_space(),
    collection bigint NOT NULL,
    document   text COLLATE "C" NOT NULL,
    seq        bigint NOT NULL,
    position   bigint,
    at         bigint NOT NULL,
    PRIMARY KEY (tenant, space, collection, document)
);
CREATE INDEX member_by_document ON member (tenant, space, document);
CREATE INDEX member_by_seq ON member (tenant, space, seq);

CREATE TABLE shelf_entry (
    tenant     integer NOT NULL DEFAULT here_tenant(),
    space      integer NOT NULL DEFAULT here_space(),
    seq        bigint NOT NULL,
    document   text COLLATE "C",
    collection text COLLATE "C",
    project    text COLLATE "C",
    at         bigint NOT NULL,
    PRIMARY KEY (tenant, space, seq)
);
CREATE INDEX shelf_entry_by_document ON shelf_entry (tenant, space, document) WHERE document IS NOT NULL;

CREATE TABLE promoted (
    tenant       integer NOT NULL DEFAULT here_tenant(),
    space        integer NOT NULL DEFAULT here_space(),
    seq          bigint NOT NULL,
    id           text COLLATE "C" NOT NULL,
    layer        text COLLATE "C" NOT NULL,
    day          text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    text         text COLLATE "C" NOT NULL,
    at           bigint NOT NULL,
    sources      text COLLATE "C" NOT NULL,
    quote        text COLLATE "C" NOT NULL,
    conversation text COLLATE "C",
    project      text COLLATE "C",
    within       text COLLATE "C",
    recorded     bigint NOT NULL,
    PRIMARY KEY (tenant, space, seq),
    UNIQUE (tenant, space, id)
);
CREATE INDEX promoted_by_day ON promoted (tenant, space, layer, day, at, id);
CREATE INDEX promoted_by_time ON promoted (tenant, space, at);

CREATE TABLE promoted_from (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    source text COLLATE "C" NOT NULL,
    seq    bigint NOT NULL,
    PRIMARY KEY (tenant, space, source, seq)
);
CREATE INDEX promoted_from_by_line ON promoted_from (tenant, space, seq);

CREATE TABLE judgement (
    tenant  integer NOT NULL DEFAULT here_tenant(),
    space   integer NOT NULL DEFAULT here_space(),
    entry   text COLLATE "C" NOT NULL,
    item    text COLLATE "C" NOT NULL,
    day     text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    line    text COLLATE "C" NOT NULL,
    reason  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, space, entry, item)
);
CREATE INDEX judgement_by_day ON judgement (tenant, space, day, entry, item);

CREATE TABLE verdict (
    tenant    integer NOT NULL DEFAULT here_tenant(),
    space     integer NOT NULL DEFAULT here_space(),
    learning  text COLLATE "C" NOT NULL,
    confirmed smallint NOT NULL,
    decider   text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    memory    text COLLATE "C",
    PRIMARY KEY (tenant, space, learning)
);

CREATE TABLE ruling (
    tenant   integer NOT NULL DEFAULT here_tenant(),
    space    integer NOT NULL DEFAULT here_space(),
    id       text COLLATE "C" NOT NULL,
    released smallint NOT NULL,
    pinned   smallint NOT NULL,
    PRIMARY KEY (tenant, space, id)
);
CREATE INDEX ruling_pinned ON ruling (tenant, space, id) WHERE pinned = 1;

-- Words: which turn, memory or part of a document holds a stem, how often, and how long it is.
CREATE TABLE turn_word (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stem   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    times  integer NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (tenant, space, stem, n)
);

CREATE TABLE memory_word (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stem   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    times  integer NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (tenant, space, stem, n)
);

CREATE TABLE span_word (
    tenant integer NOT NULL DEFAULT here_tenant(),
    space  integer NOT NULL DEFAULT here_space(),
    stem   text COLLATE "C" NOT NULL,
    n      bigint NOT NULL,
    times  integer NOT NULL,
    length integer NOT NULL,
    PRIMARY KEY (tenant, space, stem, n)
);

CREATE FUNCTION keep_row() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of % stays as it is', TG_TABLE_NAME;
END $$;

-- The ledger is append-only. A row moves to another place, or its id to a variant's; nothing else of it ever changes.
CREATE FUNCTION keep_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.chained_id IS DISTINCT FROM coalesce(OLD.chained_id, OLD.id) OR NOT starts_with(NEW.id, OLD.id || '~') THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER ledger_kept BEFORE DELETE OR UPDATE OF tenant, space, op, recorded, actor, door, session, ref,
    payload_digest, digest, position, origin ON ledger FOR EACH ROW EXECUTE FUNCTION keep_row();
CREATE TRIGGER ledger_renames_variants BEFORE UPDATE OF id, chained_id ON ledger
    FOR EACH ROW EXECUTE FUNCTION keep_name();
CREATE TRIGGER ledger_not_emptied BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION keep_row();

-- What an entry carries can be erased, but only for an id that has a tombstone, and never altered.
CREATE FUNCTION keep_payload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        RAISE EXCEPTION 'a payload is never altered';
    END IF;
    IF NOT EXISTS (
        SELECT 1 FROM tombstone t WHERE (t.tenant, t.space) = (OLD.tenant, OLD.space) AND t.id = (
            SELECT l.id FROM ledger l WHERE (l.tenant, l.space, l.position) = (OLD.tenant, OLD.space, OLD.position)
        )
    ) THEN
        RAISE EXCEPTION 'only what is forgotten is erased';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER payload_kept BEFORE UPDATE OR DELETE ON payload FOR EACH ROW EXECUTE FUNCTION keep_payload();
CREATE TRIGGER payload_not_emptied BEFORE TRUNCATE ON payload FOR EACH STATEMENT EXECUTE FUNCTION keep_payload();

CREATE TRIGGER tombstone_kept BEFORE UPDATE OR DELETE ON tombstone FOR EACH ROW EXECUTE FUNCTION keep_row();
CREATE TRIGGER tombstone_not_emptied BEFORE TRUNCATE ON tombstone FOR EACH STATEMENT EXECUTE FUNCTION keep_row();
CREATE TRIGGER audit_kept BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION keep_row();
CREATE TRIGGER audit_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION keep_row();
