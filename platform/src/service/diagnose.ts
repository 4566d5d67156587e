import { X509Certificate } from 'node:crypto';
import type { DiagnoseResponse, Finding } from 'proto/platform/v1/diagnosis.ts';
import { parseJson } from '../core/parse-json.ts';
import { DAY_MS, machineClock } from '../core/clock.ts';
import { RELEASE } from '../core/release.ts';
import { withTimeout } from '../core/with-timeout.ts';
import type { CloudEvent, EventBus } from '../events/bus.ts';
import { OUTBOX } from '../events/outbox.ts';
import type { Identity } from '../rpc/identity.ts';
import type { PlatformStore } from '../store/store.ts';

/** One thing that `admin doctor` looks at in a replica. It rejects, or says `fine: false`, when that does not work. */
export interface Check {
  name: string;
  look(): Promise<Omit<Finding, 'name'>>;
}

/** The longest that one check may take; less than the deadline of Diagnose. */
const CHECK_MS = 8_000;
/** A clock that is further off than this is set wrong. */
export const MAX_SKEW_MS = 5_000;
/** Work that waits for longer than this is not done: its job runs every few seconds. */
export const MAX_WAIT_MS = 60_000;
/** A certificate is renewed 30 days before its end by the next start. */
const RENEWED_BEFORE_MS = 14 * DAY_MS;

export async function diagnose(checks: readonly Check[]): Promise<DiagnoseResponse> {
  const findings = await Promise.all(
    checks.map(async ({ name, look }): Promise<Finding> => {
      try {
        return { name, ...(await withTimeout(look(), CHECK_MS)) };
      } catch (error) {
        return { name, fine: false, sentence: (error as Error).message };
      }
    }),
  );
  return { timeMs: machineClock.now(), findings };
}

interface Parts {
  identity: Pick<Identity, 'context'>;
  platformStore: PlatformStore;
  bus: Pick<EventBus, 'check'>;
  engines: { store: string; bus: string };
}

/** What every service looks at. @param hasOutbox false for a service whose events wait elsewhere */
export function commonChecks({ identity, platformStore, bus, engines }: Parts, hasOutbox: boolean): Check[] {
  const outbox: Check = {
    name: 'pending events',
    async look() {
      const [count, [oldest]] = await Promise.all([
        platformStore.count(OUTBOX, {}),
        platformStore.find(OUTBOX, {}, { limit: 1 }),
      ]);
      return pending(count, oldest && Date.parse((parseJson(oldest.event) as CloudEvent).time));
    },
  };
  return [
    { name: 'release', look: async () => ({ fine: true, sentence: RELEASE }) },
    { name: 'certificate', look: async () => certificateFinding(identity.context().cert) },
    {
      name: 'document store',
      async look() {
        const askedAt = performance.now();
        const [storeMs] = await Promise.all([platformStore.now(), platformStore.find(OUTBOX, {}, { limit: 1 })]);
        const tookMs = performance.now() - askedAt;
        const aheadMs = storeMs - (machineClock.now() - tookMs / 2);
        const off = Math.abs(aheadMs) > MAX_SKEW_MS + tookMs;
        const clock = off ? `; its clock is ${inSeconds(aheadMs)} this machine's` : '';
        return { fine: !off, sentence: `${engines.store} answers${clock}` };
      },
    },
    {
      name: 'event bus',
      async look() {
        await bus.check();
        return { fine: true, sentence: `${engines.bus} answers` };
      },
    },
    ...(hasOutbox ? [outbox] : []),
  ];
}

/** @param oldestMs since when the oldest waits, in milliseconds since the epoch */
export function pending(count: number, oldestMs: number | undefined): Omit<Finding, 'name'> {
  if (oldestMs === undefined) return { fine: true, sentence: 'none' };
  const waitsMs = Math.max(0, machineClock.now() - oldestMs);
  return {
    fine: waitsMs <= MAX_WAIT_MS,
    sentence: `${count}, the oldest since ${Math.round(waitsMs / 1_000)} s`,
  };
}

/** @param pem the certificate, perhaps followed by its chain */
export function certificateFinding(pem: string, nowMs = machineClock.now()): Omit<Finding, 'name'> {
  const endsAt = new X509Certificate(pem).validToDate;
  const leftMs = endsAt.getTime() - nowMs;
  const sentence = `${leftMs < 0 ? 'ended' : 'is good until'} ${endsAt.toISOString().slice(0, 10)}`;
  return { fine: leftMs > RENEWED_BEFORE_MS, sentence };
}

/** 7,000 -> "7 s ahead of". */
export const inSeconds = (aheadMs: number): string =>
  `${Math.round(Math.abs(aheadMs) / 1_000)} s ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
