-- Columns have the names of the fields in TypeScript. The CHECKs make the engine enforce the ledger's invariants, too.
CREATE TABLE IF NOT EXISTS ledgerAccounts (
  organizationId TEXT PRIMARY KEY,
  availableMicros INTEGER NOT NULL CHECK (availableMicros >= 0),
  reservedMicros INTEGER NOT NULL CHECK (reservedMicros >= 0),
  spentMicros INTEGER NOT NULL CHECK (spentMicros >= 0),
  grantedMicros INTEGER NOT NULL CHECK (grantedMicros = availableMicros + reservedMicros + spentMicros),
  openReservations INTEGER NOT NULL CHECK (openReservations >= 0),
  sequence INTEGER NOT NULL,
  relayedSequence INTEGER NOT NULL DEFAULT 0 CHECK (relayedSequence <= sequence)
) STRICT, WITHOUT ROWID;
-- Rows above relayedSequence are still to be published. The mark is in the account, because the transaction that adds a
-- row writes the account anyway.
CREATE INDEX IF NOT EXISTS ledgerAccountsUnrelayed ON ledgerAccounts (organizationId) WHERE relayedSequence < sequence;

CREATE TABLE IF NOT EXISTS ledgerReservations (
  organizationId TEXT NOT NULL,
  id TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('OPEN', 'SETTLED', 'RELEASED', 'EXPIRED')),
  amountMicros INTEGER, -- null for a tombstone: released before it was reserved
  chargedMicros INTEGER NOT NULL DEFAULT 0,
  shortfallMicros INTEGER NOT NULL DEFAULT 0,
  expiresAtMs INTEGER NOT NULL,
  PRIMARY KEY (organizationId, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS ledgerReservationsOpen
  ON ledgerReservations (organizationId, expiresAtMs) WHERE state = 'OPEN';
CREATE INDEX IF NOT EXISTS ledgerReservationsEnded ON ledgerReservations (id) WHERE state <> 'OPEN';

CREATE TABLE IF NOT EXISTS ledgerRows (
  organizationId TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('GRANT', 'RESERVE', 'SETTLE', 'RELEASE', 'EXPIRE', 'LATE_SETTLE')),
  id TEXT NOT NULL,
  availableDeltaMicros INTEGER NOT NULL,
  reservedDeltaMicros INTEGER NOT NULL,
  spentDeltaMicros INTEGER NOT NULL,
  grantedDeltaMicros INTEGER NOT NULL,
  shortfallMicros INTEGER NOT NULL,
  availableMicros INTEGER NOT NULL,
  reservedMicros INTEGER NOT NULL,
  actor TEXT NOT NULL, -- JSON
  requestId TEXT NOT NULL,
  note TEXT NOT NULL,
  createdAt TEXT NOT NULL,
  PRIMARY KEY (organizationId, sequence)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS ledgerRowsGrants ON ledgerRows (organizationId, id) WHERE kind = 'GRANT';

-- One row, written once: the id that distinguishes this file from any other.
CREATE TABLE IF NOT EXISTS ledgerFile (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL) STRICT;
