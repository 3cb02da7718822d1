/** The tables of this program in PostgreSQL, as the migrations that make them. */
import { createHash } from 'node:crypto'

// COLLATE "C" compares ids byte for byte. COLUMNS renames `life`, `gone` and `pending`. `versions` holds numbers to poll.
// Indexes of `threads` are in list order. The primary key of `grants` serves decisions, its index by grantee serves lists.
// A deleted row takes its grants along: the next owner has granted nothing yet.
const OWNERSHIP = `
  CREATE TABLE {schema}.threads (
    scope text COLLATE "C" NOT NULL,
    thread_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    name text COLLATE "C",
    deleted_at bigint,
    provisional boolean NOT NULL DEFAULT false,
    pending integer NOT NULL DEFAULT 0,
    life integer NOT NULL DEFAULT 0,
    archived boolean NOT NULL DEFAULT false,
    gone boolean NOT NULL DEFAULT false,
    PRIMARY KEY (scope, thread_id)
  );
  CREATE INDEX threads_by_user ON {schema}.threads (user_id, scope, last_used_at DESC, thread_id);
  CREATE INDEX threads_by_use ON {schema}.threads (scope, last_used_at DESC, thread_id);
  CREATE INDEX threads_gone ON {schema}.threads (deleted_at) WHERE gone;
  CREATE TABLE {schema}.grants (
    scope text COLLATE "C" NOT NULL,
    thread_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('user', 'group')),
    grantee text COLLATE "C" NOT NULL,
    access text COLLATE "C" NOT NULL CHECK (access IN ('read', 'write')),
    granted_by text COLLATE "C" NOT NULL,
    granted_at bigint NOT NULL,
    PRIMARY KEY (scope, thread_id, kind, grantee),
    FOREIGN KEY (scope, thread_id) REFERENCES {schema}.threads ON DELETE CASCADE
  );
  CREATE INDEX grants_by_grantee ON {schema}.grants (kind, grantee, scope, thread_id);
  CREATE INDEX grants_by_giver ON {schema}.grants (granted_by);
  CREATE TABLE {schema}.observations (
    scope text COLLATE "C" NOT NULL,
    thread_id text COLLATE "C" NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    agent_id text COLLATE "C" NOT NULL,
    first_used_at bigint NOT NULL,
    last_used_at bigint NOT NULL,
    ran boolean NOT NULL,
    PRIMARY KEY (scope, thread_id, user_id)
  );
  CREATE INDEX observations_by_user ON {schema}.observations (user_id, scope, thread_id);
  CREATE TABLE {schema}.revocations (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('token', 'user')),
    id text COLLATE "C" NOT NULL,
    issued_before bigint CHECK (issued_before IS NULL OR kind = 'user'),
    revoked_at bigint NOT NULL,
    PRIMARY KEY (kind, id)
  );
  CREATE TABLE {schema}.secrets (name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);
  CREATE TABLE {schema}.versions (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);
  INSERT INTO {schema}.versions (name, value) VALUES ('revocations', 0), ('standing', 0);
`

// Counters of rate-limiter-flexible (src/limits/postgres.ts). Keys are digests, not user ids. Streams count until the lease ends.
const LIMITS = `
  CREATE TABLE {schema}.rate_limits (key text COLLATE "C" PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint);
  CREATE INDEX rate_limits_expire ON {schema}.rate_limits (expire);
  CREATE TABLE {schema}.open_streams (
    id uuid PRIMARY KEY,
    caller text COLLATE "C" NOT NULL,
    until timestamptz NOT NULL
  );
  CREATE INDEX open_streams_by_caller ON {schema}.open_streams (caller);
`

// `deletion` and `runs_by` mean the same as in src/store/sqlite/schema.ts.
const DELETIONS = `
  ALTER TABLE {schema}.threads ADD COLUMN deletion text COLLATE "C";
  ALTER TABLE {schema}.threads ADD COLUMN runs_by text COLLATE "C" NOT NULL DEFAULT '*';
`

// List indexes hold only live rows and begin with a list's optional conditions: a list costs no more than its page.
// `threads_of_user` serves work on a user's rows in any state. It is not written when a thread is used.
const LISTS = `
  CREATE INDEX threads_of_user ON {schema}.threads (user_id, scope, thread_id);
  CREATE INDEX listed_by_user ON {schema}.threads (user_id, scope, archived, last_used_at DESC, thread_id)
    WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_user_agent ON {schema}.threads (user_id, scope, agent_id, archived, last_used_at DESC, thread_id)
    WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_use ON {schema}.threads (scope, archived, last_used_at DESC, thread_id) WHERE deleted_at IS NULL;
  CREATE INDEX listed_by_agent ON {schema}.threads (scope, agent_id, archived, last_used_at DESC, thread_id)
    WHERE deleted_at IS NULL;
  DROP INDEX {schema}.threads_by_user;
  DROP INDEX {schema}.threads_by_use;
  CREATE INDEX grants_with_access ON {schema}.grants (kind, grantee, scope, thread_id, access);
  DROP INDEX {schema}.grants_by_grantee;
  ALTER INDEX {schema}.grants_with_access RENAME TO grants_by_grantee;
  DROP INDEX {schema}.grants_by_giver;
  CREATE INDEX grants_by_giver ON {schema}.grants (granted_by, kind, grantee);
`

// The columns mean the same as in src/store/sqlite/schema.ts.
const COLUMNS = `
  ALTER TABLE {schema}.threads RENAME COLUMN life TO incarnation;
  ALTER TABLE {schema}.threads RENAME COLUMN gone TO upstream_deleted;
  ALTER TABLE {schema}.threads RENAME COLUMN pending TO open_runs;
`

// Means the same as in src/store/sqlite/schema.ts.
const UNCONFIRMED = `
  CREATE INDEX threads_unconfirmed ON {schema}.threads (last_used_at) WHERE provisional;
`

// Digests as in LIMITS. A row of `token_reserves` is what an open run has set aside; it is charged when its lease ends.
const BUDGETS = `
  CREATE TABLE {schema}.token_spending (
    key text COLLATE "C" PRIMARY KEY,
    spent bigint NOT NULL,
    ends_at timestamptz NOT NULL
  );
  CREATE INDEX token_spending_by_end ON {schema}.token_spending (ends_at);
  CREATE TABLE {schema}.token_reserves (
    id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    reserve bigint NOT NULL,
    milliseconds bigint NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (id, key)
  );
  CREATE INDEX token_reserves_by_key ON {schema}.token_reserves (key);
  CREATE INDEX token_reserves_by_lease ON {schema}.token_reserves (until);
`

export interface Migration {
  readonly number: number
  readonly name: string
  /** `{schema}` is replaced by the configured schema. */
  readonly text: string
  /** SHA-256 of the text, in hexadecimal. */
  readonly checksum: string
}

/** Append only: an applied migration must not change by a single character. */
export const MIGRATIONS: readonly Migration[] = [
  ['ownership', OWNERSHIP],
  ['limits', LIMITS],
  ['deletions', DELETIONS],
  ['lists', LISTS],
  ['columns', COLUMNS],
  ['unconfirmed', UNCONFIRMED],
  ['budgets', BUDGETS],
].map(([name = '', text = ''], at) => ({
  number: at + 1,
  name,
  text,
  checksum: createHash('sha256').update(text).digest('hex'),
}))
