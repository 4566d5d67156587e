import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import type { ServerSpec } from './server-spec.ts';

export const SECANTUSDB_VERSION = '0.7.0b3';
export const STAND_IN = `SecantusDB ${SECANTUSDB_VERSION} (WiredTiger behind MongoDB's wire protocol), standing in for mongod`;
export const secantusFolder = (engines: string): string => join(engines, `secantusdb-${SECANTUSDB_VERSION}`);
const PROBE_TIMEOUT_MS = 2_000;

export const mongodb: ServerSpec = {
  key: 'mongodb',
  name: 'MongoDB',
  setting: 'MONGODB_URL',
  url: (port) => `mongodb://127.0.0.1:${port}/?replicaSet=secantus`,
  prepare: async () => undefined,
  // not by its script: scripts of a virtual environment hold the path of the folder that it was created in, since
  // renamed
  command: ({ engines, data, port }) => [
    join(secantusFolder(engines), 'bin/python3'),
    join(import.meta.dirname, 'secantusdb.py'),
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    '--storage-path',
    join(data, 'wiredtiger'),
    '--cache-size',
    '256M',
    '--sync-on-commit',
    '--enable-test-commands',
  ],
  async answers(port) {
    const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
      serverSelectionTimeoutMS: PROBE_TIMEOUT_MS,
      connectTimeoutMS: PROBE_TIMEOUT_MS,
    });
    try {
      return (await client.db('admin').command({ hello: 1 })).isWritablePrimary === true;
    } finally {
      await client.close();
    }
  },
};
