-- +goose Up

-- Configuration. Revisions are immutable; config_active is the one row that decides and claims lock FOR SHARE, and that
-- every writer of an authority (apply, suspension, block, key) locks FOR UPDATE first, because an absent row cannot be locked.
CREATE TABLE config_revision (
    tenant_id  text        NOT NULL,
    revision   bigint      NOT NULL,
    body       bytea       NOT NULL,
    author     text        NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, revision)
);

CREATE TABLE config_active (
    tenant_id text   PRIMARY KEY,
    revision  bigint NOT NULL
);

-- Agents' keys. Only the hash is kept. tools: NULL means all tools that the agent is allowed.
CREATE TABLE api_key (
    id         text        PRIMARY KEY,
    tenant_id  text        NOT NULL,
    agent      text        NOT NULL,
    tools      text[],
    hash       bytea       NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text        NOT NULL,
    revoked_at timestamptz
);

-- The kill switch. A row is kept when it is lifted, so that who paused what stays readable.
CREATE TABLE suspension (
    tenant_id text        NOT NULL,
    scope     text        NOT NULL CHECK (scope IN ('tenant', 'agent', 'tool')),
    name      text        NOT NULL,
    active    boolean     NOT NULL,
    reason    text        NOT NULL,
    by        text        NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, scope, name)
);

-- People, mirrored from Slack. slack_group is the row that is locked: sync FOR UPDATE, decide and claim FOR SHARE.
CREATE TABLE slack_user (
    tenant_id        text        NOT NULL,
    user_id          text        NOT NULL,
    team_id          text        NOT NULL,
    name             text        NOT NULL,
    deleted          boolean     NOT NULL,
    restricted       boolean     NOT NULL,
    ultra_restricted boolean     NOT NULL,
    bot              boolean     NOT NULL,
    invited          boolean     NOT NULL,
    stranger         boolean     NOT NULL,
    changed          bigint      NOT NULL DEFAULT 0,
    synced_at        timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, user_id)
);

CREATE TABLE slack_group (
    tenant_id text        NOT NULL,
    group_id  text        NOT NULL,
    handle    text        NOT NULL,
    enabled   boolean     NOT NULL,
    version   bigint      NOT NULL,
    changed   bigint      NOT NULL DEFAULT 0,
    synced_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, group_id)
);

CREATE TABLE slack_group_member (
    tenant_id text NOT NULL,
    group_id  text NOT NULL,
    user_id   text NOT NULL,
    PRIMARY KEY (tenant_id, group_id, user_id)
);
CREATE INDEX slack_group_member_by_user ON slack_group_member (tenant_id, user_id);

-- at is when the person was last blocked. It stays when the block is lifted: no vote from before it counts again.
CREATE TABLE blocked_user (
    tenant_id text        NOT NULL,
    user_id   text        NOT NULL,
    active    boolean     NOT NULL DEFAULT true,
    reason    text        NOT NULL,
    by        text        NOT NULL,
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, user_id)
);

-- A pause of a run: what the agent sent at once, told once.
CREATE TABLE run_pause (
    pause_id          uuid        PRIMARY KEY,
    tenant_id         text        NOT NULL,
    agent             text        NOT NULL,
    run_id            text        NOT NULL,
    pause             integer     NOT NULL,
    intake_key        bytea       NOT NULL,
    blob_id           uuid,
    app_state_version text        NOT NULL,
    agent_revision    text        NOT NULL,
    open_calls        integer     NOT NULL CHECK (open_calls >= 0),
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at         timestamptz,
    attempts          integer     NOT NULL DEFAULT 0,
    next_try_at       timestamptz,
    trying_since      timestamptz, -- the first try of this effort to tell; 24 h later it is given up
    again_at          timestamptz, -- asked for again after it had been told
    told_at           timestamptz,
    told_revision     text,
    sending_until     timestamptz,
    dead_at           timestamptz,
    stopped_at        timestamptz,
    superseded_at     timestamptz,
    UNIQUE (tenant_id, agent, run_id, intake_key),
    UNIQUE (tenant_id, agent, run_id, pause)
) WITH (fillfactor = 80);
CREATE INDEX run_pause_due ON run_pause (next_try_at) WHERE next_try_at IS NOT NULL;

-- The saved run, sealed; opened by the worker alone.
CREATE TABLE run_state_blob (
    blob_id        uuid   PRIMARY KEY,
    tenant_id      text   NOT NULL,
    pause_id       uuid   NOT NULL,
    format         text   NOT NULL,
    schema_version text   NOT NULL,
    sdk_version    text   NOT NULL,
    uri            text,
    sealed         bytea,
    digest         bytea  NOT NULL,
    bytes          bigint NOT NULL
);
ALTER TABLE run_state_blob ALTER COLUMN sealed SET STORAGE EXTERNAL;

-- The approval. No foreign key points here and no index holds its status: every non-terminal approval is in approval_open,
-- so a transition stays a HOT update and the table can be partitioned by month on its v7 key.
CREATE TABLE approval_request (
    approval_id        uuid        PRIMARY KEY,
    tenant_id          text        NOT NULL,
    agent              text        NOT NULL,
    api_key_id         text        NOT NULL,
    run_id             text        NOT NULL,
    pause_id           uuid        NOT NULL,
    call_path          text[]      NOT NULL,
    agent_path         text[]      NOT NULL,
    tool_call_id       text        NOT NULL,
    lineage_id         uuid        NOT NULL,
    parent_id          uuid,
    child_id           uuid,
    replaces_id        uuid,
    tool_name          text        NOT NULL,
    tool_kind          text        NOT NULL CHECK (tool_kind IN ('effect', 'question')),
    tool_revision      text        NOT NULL,
    executor           text        NOT NULL CHECK (executor IN ('worker', 'agent', 'none')),
    arguments_digest   text        NOT NULL,
    unreadable         text        NOT NULL DEFAULT '',
    digest             text        NOT NULL,
    operation_key      text        NOT NULL,
    target             text        NOT NULL,
    target_version     text        NOT NULL,
    operator_scope     json        NOT NULL,
    rule               text        NOT NULL,
    rule_why           text        NOT NULL,
    config_revision    bigint      NOT NULL,
    requester          text        NOT NULL,
    app_state_version  text        NOT NULL,
    sdk_format         text        NOT NULL,
    sdk_version        text        NOT NULL,
    sdk_schema_version text        NOT NULL,
    agent_revision     text        NOT NULL,
    state_blob_uri     text,
    snapshot           json,
    editors            text[]      NOT NULL DEFAULT '{}',
    edit_diff          text        NOT NULL DEFAULT '',
    card_id            uuid        NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    decide_by          timestamptz NOT NULL,
    execute_within     interval    NOT NULL,
    expires_at         timestamptz NOT NULL,
    status             text        NOT NULL,
    version            bigint      NOT NULL DEFAULT 1,
    votes              integer     NOT NULL DEFAULT 0,
    reason_code        text,
    message            text,
    held               text,
    held_since         timestamptz,
    decided_by         text,
    decided_at         timestamptz,
    revoked_by         text,
    revoked_at         timestamptz,
    started_at         timestamptz,
    ended_at           timestamptz,
    receipt            text,
    evidence           json,
    settled            boolean     NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX approval_request_by_run ON approval_request (tenant_id, agent, run_id, approval_id);
CREATE INDEX approval_request_by_pause ON approval_request (pause_id);

-- Salt and arguments, sealed together; the result apart. `serve` reads this, never states.
CREATE TABLE approval_payload (
    approval_id uuid  PRIMARY KEY,
    arguments   bytea NOT NULL,
    result      bytea
);

CREATE TABLE approval_decision (
    approval_id   uuid        NOT NULL,
    reviewer      text        NOT NULL,
    decision_id   uuid        NOT NULL UNIQUE,
    decision      text        NOT NULL CHECK (decision IN ('approve', 'reject', 'edit', 'respond')),
    digest        text        NOT NULL,
    edited_digest text,
    authorised    json        NOT NULL,
    rule          text        NOT NULL,
    config_revision bigint    NOT NULL,
    surface       text        NOT NULL,
    reason        text        NOT NULL DEFAULT '',
    decided_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (approval_id, reviewer)
);

-- Every non-terminal approval, with what it waits for and when somebody must look. Its row goes when the approval ends.
CREATE TABLE approval_open (
    approval_id uuid        PRIMARY KEY,
    tenant_id   text        NOT NULL,
    run_id      text        NOT NULL,
    wait        text        NOT NULL CHECK (wait IN ('decision', 'execution', 'agent', 'lease', 'retry', 'evidence', 'held')),
    due_at      timestamptz NOT NULL
);
CREATE INDEX approval_open_due ON approval_open (due_at);
CREATE INDEX approval_open_run ON approval_open (tenant_id, run_id);

-- Identity: a call of a pause has one approval; an edit moves the row to its child.
CREATE TABLE run_call (
    tenant_id    text   NOT NULL,
    pause_id     uuid   NOT NULL,
    call_path    text[] NOT NULL,
    tool_call_id text   NOT NULL,
    approval_id  uuid   NOT NULL,
    PRIMARY KEY (tenant_id, pause_id, call_path, tool_call_id)
);

-- The effect's ledger: one row a lineage, so that an edited approval can never run beside its parent.
CREATE TABLE idempotency_ledger (
    lineage_id       uuid        PRIMARY KEY,
    approval_id      uuid        NOT NULL,
    operation_key    text        NOT NULL,
    state            text        NOT NULL,
    epoch            bigint      NOT NULL,
    token            uuid        NOT NULL,
    holder           text        NOT NULL,
    attempt_id       text        NOT NULL DEFAULT '',
    attempts         integer     NOT NULL,
    lease_expires_at timestamptz,
    claimed_at       timestamptz NOT NULL,
    first_sent_at    timestamptz,
    next_try_at      timestamptz,
    maybe_effect     boolean     NOT NULL DEFAULT false,
    reused           integer     NOT NULL DEFAULT 0,
    error            text
) WITH (fillfactor = 70);

CREATE TABLE card (
    card_id       uuid    PRIMARY KEY,
    tenant_id     text    NOT NULL,
    approval_id   uuid    NOT NULL,
    pause_id      uuid    NOT NULL,
    channel       text    NOT NULL,
    message_ts    text,
    mac_key       bytea   NOT NULL,
    shown_version bigint  NOT NULL DEFAULT 0,
    post_started  timestamptz,
    plain         boolean NOT NULL DEFAULT false,
    failure       text
) WITH (fillfactor = 80);

-- What a commit promised to do next. Deleted on dispatch, so the table stays as small as the backlog.
CREATE TABLE outbox (
    outbox_id  uuid        PRIMARY KEY,
    kind       text        NOT NULL CHECK (kind IN ('card', 'execute', 'resume')),
    subject_id uuid        NOT NULL,
    not_before timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- The resume message as it was first built, sealed by the worker; every later try sends the same bytes.
CREATE TABLE resume_message (
    pause_id uuid        PRIMARY KEY,
    kind     text        NOT NULL CHECK (kind IN ('run.resume', 'run.blocked')),
    sealed   bytea       NOT NULL,
    built_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose StatementBegin
-- A UUIDv7 (RFC 9562, its method 3: microseconds in rand_a) of the moment of the insertion. Given by a client it would be of a moment
-- before the wait for a lock, and a request's events would not be in the order of its transitions.
CREATE FUNCTION audit_event_id() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(t.us / 1000), 12, '0') || '7' || lpad(to_hex(t.us % 1000 * 4096 / 1000), 3, '0') || substr(t.random, 20, 4) || substr(t.random, 25))::uuid
    FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS us, gen_random_uuid()::text AS random) t
$$;
-- +goose StatementEnd

CREATE TABLE audit_event (
    event_id    uuid        PRIMARY KEY DEFAULT audit_event_id(),
    tenant_id   text        NOT NULL,
    approval_id uuid,
    pause_id    uuid,
    kind        text        NOT NULL,
    from_status text,
    to_status   text,
    actor       text        NOT NULL,
    surface     text        NOT NULL,
    detail      json        NOT NULL DEFAULT '{}',
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX audit_event_by_approval ON audit_event (approval_id, event_id);
CREATE INDEX audit_event_by_pause ON audit_event (pause_id) WHERE approval_id IS NULL AND pause_id IS NOT NULL;

-- The chain over a tenant's audit events, sealed soon after their commit (sealing inside the transition would serialise a
-- tenant). audit_unsealed names what the chain does not cover yet.
CREATE TABLE audit_unsealed (
    event_id  uuid PRIMARY KEY,
    tenant_id text NOT NULL
);
CREATE TABLE audit_seal (
    tenant_id text   NOT NULL,
    seq       bigint NOT NULL,
    event_id  uuid   NOT NULL UNIQUE,
    prev      bytea  NOT NULL,
    hash      bytea  NOT NULL,
    PRIMARY KEY (tenant_id, seq)
);

-- Slack requests seen within the signature's window: a replay is refused on every route.
CREATE TABLE slack_seen (
    signature bytea       PRIMARY KEY,
    seen_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX slack_seen_at ON slack_seen (seen_at);

-- +goose StatementBegin
-- The (from, to) pairs are those of approvals/status.go; a test compares the two.
CREATE FUNCTION approval_status_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF NEW.status <> 'pending' THEN
            RAISE EXCEPTION 'approval % cannot begin as %', NEW.approval_id, NEW.status USING ERRCODE = 'HP001';
        END IF;
        RETURN NEW;
    END IF;
    IF (OLD.status, NEW.status) NOT IN (
        ('pending', 'pending'),
        ('pending', 'approved'),
        ('pending', 'rejected'),
        ('pending', 'edited'),
        ('pending', 'responded'),
        ('pending', 'expired'),
        ('pending', 'revoked'),
        ('pending', 'migration_required'),
        ('approved', 'approved'),
        ('approved', 'executing'),
        ('approved', 'expired'),
        ('approved', 'revoked'),
        ('approved', 'migration_required'),
        ('executing', 'executing'),
        ('executing', 'approved'),
        ('executing', 'completed'),
        ('executing', 'failed'),
        ('executing', 'uncertain'),
        ('uncertain', 'uncertain'),
        ('uncertain', 'completed'),
        ('uncertain', 'failed')
    ) THEN
        RAISE EXCEPTION 'approval % cannot go from % to %', NEW.approval_id, OLD.status, NEW.status USING ERRCODE = 'HP001';
    END IF;
    IF NEW.version <= OLD.version THEN
        RAISE EXCEPTION 'approval % must raise its version', NEW.approval_id USING ERRCODE = 'HP001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER approval_status_guard BEFORE INSERT OR UPDATE OF status ON approval_request
    FOR EACH ROW EXECUTE FUNCTION approval_status_guard();

-- +goose StatementBegin
-- What was proposed never changes under a decision. snapshot may become NULL and edit_diff empty (erasure), nothing else.
CREATE FUNCTION approval_proposal_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the proposal of approval % cannot be changed', OLD.approval_id USING ERRCODE = 'HP002';
END $$;
-- +goose StatementEnd
CREATE TRIGGER approval_proposal_guard BEFORE UPDATE ON approval_request
    FOR EACH ROW
    WHEN ((OLD.approval_id, OLD.tenant_id, OLD.agent, OLD.run_id, OLD.call_path, OLD.agent_path, OLD.tool_call_id, OLD.lineage_id,
           OLD.parent_id, OLD.tool_name, OLD.tool_kind, OLD.tool_revision, OLD.executor, OLD.arguments_digest, OLD.unreadable, OLD.digest,
           OLD.operation_key, OLD.target, OLD.target_version, OLD.operator_scope::text, OLD.rule, OLD.config_revision, OLD.requester,
           OLD.app_state_version, OLD.sdk_format, OLD.sdk_version, OLD.sdk_schema_version, OLD.agent_revision, OLD.editors, OLD.decide_by, OLD.execute_within,
           OLD.api_key_id, OLD.replaces_id, OLD.rule_why, OLD.card_id, OLD.created_at)
          IS DISTINCT FROM
          (NEW.approval_id, NEW.tenant_id, NEW.agent, NEW.run_id, NEW.call_path, NEW.agent_path, NEW.tool_call_id, NEW.lineage_id,
           NEW.parent_id, NEW.tool_name, NEW.tool_kind, NEW.tool_revision, NEW.executor, NEW.arguments_digest, NEW.unreadable, NEW.digest,
           NEW.operation_key, NEW.target, NEW.target_version, NEW.operator_scope::text, NEW.rule, NEW.config_revision, NEW.requester,
           NEW.app_state_version, NEW.sdk_format, NEW.sdk_version, NEW.sdk_schema_version, NEW.agent_revision, NEW.editors, NEW.decide_by, NEW.execute_within,
           NEW.api_key_id, NEW.replaces_id, NEW.rule_why, NEW.card_id, NEW.created_at)
          OR (NEW.snapshot IS NOT NULL AND OLD.snapshot::text IS DISTINCT FROM NEW.snapshot::text)
          OR (NEW.edit_diff <> '' AND OLD.edit_diff <> NEW.edit_diff))
    EXECUTE FUNCTION approval_proposal_guard();

-- +goose StatementBegin
CREATE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% on % is refused: its rows are evidence', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP003';
END $$;
-- +goose StatementEnd
CREATE TRIGGER approval_request_kept BEFORE DELETE ON approval_request FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER approval_decision_kept BEFORE UPDATE OR DELETE ON approval_decision FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER audit_event_kept BEFORE UPDATE OR DELETE ON audit_event FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER config_revision_kept BEFORE UPDATE OR DELETE ON config_revision FOR EACH ROW EXECUTE FUNCTION append_only();
CREATE TRIGGER ledger_kept BEFORE DELETE ON idempotency_ledger FOR EACH ROW EXECUTE FUNCTION append_only();

-- +goose StatementBegin
-- The ledger's pairs, of approvals/ledger.go. The epoch only grows, and a new holder is a new epoch (I16).
CREATE FUNCTION ledger_state_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (
        ('reserved', 'reserved'),
        ('reserved', 'executing'),
        ('reserved', 'failed_terminal'),
        ('reserved', 'uncertain'),
        ('executing', 'executing'),
        ('executing', 'reserved'),
        ('executing', 'succeeded'),
        ('executing', 'failed_retryable'),
        ('executing', 'failed_terminal'),
        ('executing', 'uncertain'),
        ('failed_retryable', 'reserved'),
        ('failed_retryable', 'failed_terminal'),
        ('uncertain', 'uncertain'),
        ('uncertain', 'succeeded'),
        ('uncertain', 'failed_terminal'),
        ('succeeded', 'succeeded')
    ) THEN
        RAISE EXCEPTION 'operation % cannot go from % to %', NEW.lineage_id, OLD.state, NEW.state USING ERRCODE = 'HP001';
    END IF;
    IF NEW.epoch < OLD.epoch OR (NEW.token <> OLD.token AND NEW.epoch = OLD.epoch) THEN
        RAISE EXCEPTION 'operation % must raise its epoch', NEW.lineage_id USING ERRCODE = 'HP001';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_state_guard BEFORE UPDATE ON idempotency_ledger FOR EACH ROW EXECUTE FUNCTION ledger_state_guard();

-- +goose Down
DROP TABLE slack_seen, audit_seal, audit_unsealed, audit_event, resume_message, outbox, card, idempotency_ledger, run_call, approval_open,
    approval_decision, approval_payload, approval_request, run_state_blob, run_pause, blocked_user, slack_group_member, slack_group, slack_user,
    suspension, api_key, config_active, config_revision;
DROP FUNCTION audit_event_id();
DROP FUNCTION ledger_state_guard();
DROP FUNCTION append_only();
DROP FUNCTION approval_proposal_guard();
DROP FUNCTION approval_status_guard();
