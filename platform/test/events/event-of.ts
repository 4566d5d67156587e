import type { CloudEvent } from 'platform/events/bus.ts';
import { newId } from 'platform/core/ids.ts';

/** The n-th event of an organization. */
export const eventOf = (organizationId: string, n: number): CloudEvent => ({
  specversion: '1.0',
  id: newId(),
  source: '/test',
  type: 'test.counted.v1',
  subject: 'counts/1',
  time: new Date().toISOString(),
  datacontenttype: 'application/json',
  organizationid: organizationId,
  partitionkey: organizationId,
  sequence: n + 1,
  data: { n, text: 'ünï "\u0000" 🚀' },
});
