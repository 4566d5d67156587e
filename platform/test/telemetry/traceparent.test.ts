import { newId } from 'platform/core/ids.ts';
import { formatTraceparent, parseTraceparent, rootTraceId } from 'platform/telemetry/traceparent.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';

describe('traceparent', () => {
  it('is read as W3C Trace Context says, also of later versions', () => {
    const scope = { traceId: TRACE, spanId: SPAN };
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({ ...scope, isSampled: true });
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)).toEqual({ ...scope, isSampled: false });
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-02`)).toEqual({ ...scope, isSampled: false });
    expect(parseTraceparent(`01-${TRACE}-${SPAN}-03-what-may-come`)).toEqual({ ...scope, isSampled: true });
  });

  it.each([
    '',
    'x',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
    `01-${TRACE}-${SPAN}-01x`,
  ])('is ignored when it is not valid: %j', (header) => {
    expect(parseTraceparent(header)).toBeUndefined();
  });

  it('of a scope is valid, with or without a span', () => {
    const sampled = { traceId: TRACE, spanId: SPAN, isSampled: true };
    expect(parseTraceparent(formatTraceparent(sampled))).toEqual(sampled);
    expect(parseTraceparent(formatTraceparent({ traceId: TRACE, spanId: '', isSampled: false }))).toMatchObject({
      traceId: TRACE,
      isSampled: false,
    });
  });

  it('of a new trace has the request id without its hyphens, if that is a UUID', () => {
    const id = newId();
    expect(rootTraceId(id.toUpperCase(), newId)).toBe(id.replaceAll('-', ''));
    for (const other of ['order-17', '00000000-0000-0000-0000-000000000000', 'f'.repeat(36), ''])
      expect(rootTraceId(other, () => id)).toBe(id.replaceAll('-', ''));
  });
});
