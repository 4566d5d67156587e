import type { Log } from '../core/log.ts';
import type { OpenStore } from '../store/store.ts';
import type { Job } from './jobs.ts';

/** For a database to which nobody writes any more: otherwise SQLite cuts the log back itself. */
export const cutBackLogJob = (cutBackLog: NonNullable<OpenStore['cutBackLog']>, log: Log): Job => ({
  name: 'cut-back-log',
  description: 'Cuts back the write-ahead log of the database file, and warns while another process prevents that.',
  intervalMs: 60_000,
  async run() {
    const bytesAbove = await cutBackLog();
    if (bytesAbove > 0)
      log.warn(
        { bytesAbove },
        'another process reads an old state of the database file, so its log cannot be cut back',
      );
    return 0;
  },
});
