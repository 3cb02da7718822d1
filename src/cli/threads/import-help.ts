/** The help of `threads import`. */
export const IMPORT_HELP = `threadwarden threads import --config FILE SOURCE [--scope KEY] [--dry-run] [--report FILE] [--quiet] [--json]

Takes over whose threads are. Owners that are there are never replaced: a thread that somebody else owns, that was deleted,
or that others ran under enforcement: observe is a conflict, told and left as it is. So is one that the source gives to two
users: neither gets it. The source is read to its end before anything is written. If the import is interrupted, or the store
fails, the same command goes on: what was imported counts as there already.

SOURCE is one of these:

  FILE [--format csv|jsonl]
      A file, or - for stdin. csv has a header with the columns thread and user, and any of agent, name, archived, created,
      used, deleted, scope; jsonl has a JSON object with these keys in each line. user is issuer:subject, or nobody for a
      thread that everybody is to be kept from. scope is the upstream's key under upstreams or agents; a line without one
      is of upstream, or of what --scope names. Times are written 2026-01-31T12:00:00Z. threads export writes such files.
  --from-upstream (--map FILE [--format F] | --owner-field FIELD --issuer KEY) [--agent AGENT]… [--token-file FILE]
      A runtime's own list of threads: of the first one, or of that which --scope names. Whose they are says a file with
      thread and user, or a field of the list (createdById) that holds the subject of the user, of the issuer KEY. --agent
      asks for the threads of an agent, which a managed runtime wants; --token-file names a file with the credential to
      ask with.
  --from-observed
      What was seen under enforcement: observe: a thread that one user alone ran becomes theirs. One that several ran is a
      conflict: threads assign gives it to one of them. At all upstreams, or at that which --scope names.

  --config FILE  the configuration (YAML or JSON)
  --scope KEY    an upstream, by its key under upstreams or agents; '' is upstream
  --dry-run      says what would become of it, and changes nothing
  --report FILE  writes everything that could not be imported there, a JSON object in each line; the first 20 are told on
                 stderr, too
  --quiet        says nothing of the progress
  --json         prints {"dryRun", "complete", "read", "added", "same", "repeated", "conflicts", "invalid", "unmapped",
                 "unlisted"} on stdout

Exit codes: 0 all of it is imported or was there, 1 conflicts, invalid lines or threads without a mapping, interrupted, an
invalid configuration or a failing store, 2 wrong usage.`
