import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type { GatewayRequest } from './exchange.ts';

/** Of two that a client likes equally, the first is used. */
const CODINGS = ['br', 'gzip', 'identity'] as const;
type Coding = (typeof CODINGS)[number];

const toBrotli = promisify(brotliCompress);
/** The quality at which brotli takes about as long as gzip does; its default takes fifty times as long. */
const PARAMETERS = { [constants.BROTLI_PARAM_QUALITY]: 4 };

/** Both work on a thread of their own. */
export const compress = {
  br: (bytes: Buffer): Promise<Buffer> => toBrotli(bytes, { params: PARAMETERS }),
  gzip: promisify(gzip) as (bytes: Buffer) => Promise<Buffer>,
};

/** The coding that Accept-Encoding prefers (RFC 9110, 12.5.3); `identity` when it is absent or refuses all. */
export function contentCoding(req: Pick<GatewayRequest, 'headers'>): Coding {
  if (req.headers['accept-encoding'] === undefined) return 'identity';
  // the published types lag behind: they lack `preferred`
  const negotiator = new Negotiator(req) as {
    encodings(available: readonly Coding[], options: { preferred: readonly Coding[] }): Coding[];
  };
  return negotiator.encodings(CODINGS, { preferred: CODINGS })[0] ?? 'identity';
}
