import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { lineSplitter } from './lines.ts';
import { InvalidReportError, maxReportBytes, REPORT_BYTES, type Progress } from './reports.ts';

/**
 * Reads what a runner writes: a report each line, in their order. A long one is checked in the turn of its
 * organization, and those after it wait as well.
 * @param given.current what the runner works on
 * @param given.isAlive false once its reports count no longer
 * @returns takes a piece of the stream
 */
export function reportReader({
  current,
  isAlive,
  schedule,
  onReport,
  onInvalidReport,
}: {
  current(): (Progress & { organizationId: string; isTimed: boolean }) | undefined;
  isAlive(): boolean;
  schedule: FairScheduler;
  /** Throws for a report that cannot be. */
  onReport(line: string): void;
  onInvalidReport(error: unknown): void;
}): (piece: Buffer) => void {
  let waiting = 0;

  function onLine(line: string): void {
    const evaluation = current();
    if (!evaluation || (waiting === 0 && line.length <= REPORT_BYTES)) return onReport(line);
    // Until it is checked, the runner has kept its limit of time.
    if (line.length > REPORT_BYTES) evaluation.isTimed = false;
    waiting += 1;
    const check = (): void => {
      waiting -= 1;
      if (isAlive()) onReport(line);
    };
    schedule(evaluation.organizationId, check).catch(onInvalidReport);
  }
  const split = lineSplitter(() => maxReportBytes(current()), onLine);

  return (piece) => {
    try {
      if (!split(piece)) throw new InvalidReportError('a report that is too long');
    } catch (error) {
      onInvalidReport(error);
    }
  };
}
