import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import Negotiator from 'negotiator';

/** Compresses one body, in any of the codings. */
export type Compress = (coding: Exclude<Coding, 'identity'>, bytes: Buffer) => Promise<Buffer>;

/** Of two that a client likes equally, the first is used. */
const CODINGS = ['br', 'gzip', 'identity'] as const;
export type Coding = (typeof CODINGS)[number];

const toBrotli = promisify(brotliCompress);
const toGzip: (bytes: Buffer) => Promise<Buffer> = promisify(gzip);
/** The quality at which brotli takes about as long as gzip does; its default takes fifty times as long. */
const PARAMETERS = { [constants.BROTLI_PARAM_QUALITY]: 4 };

/** On a thread of its own. */
export const compress: Compress = (coding, bytes) =>
  coding === 'br' ? toBrotli(bytes, { params: PARAMETERS }) : toGzip(bytes);

/** For a body that never changes: without a token anybody may ask for it as often as he likes. */
export function compressOnce(): Compress {
  const made = new Map<string, Promise<Buffer>>();
  return (coding, bytes) => {
    const known = made.get(coding) ?? compress(coding, bytes);
    made.set(coding, known);
    return known;
  };
}

/** The codings that Accept-Encoding takes, the preferred first (RFC 9110, 12.5.3); `identity` when it refuses all. */
export function acceptedCodings(req: Pick<IncomingMessage, 'headers'>): [Coding, ...Coding[]] {
  if (req.headers['accept-encoding'] === undefined) return ['identity'];
  // the published types lag behind: they lack `preferred`
  const negotiator = new Negotiator(req) as {
    encodings(available: readonly Coding[], options: { preferred: readonly Coding[] }): Coding[];
  };
  const [first = 'identity', ...others] = negotiator.encodings(CODINGS, { preferred: CODINGS });
  return [first, ...others];
}
