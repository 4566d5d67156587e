import { hash } from 'node:crypto';
import { compressOnce } from '../http/content-coding.ts';
import type { LocalEntry } from '../contract/routes.ts';
import type { RestMethod } from '../contract/rest-methods.ts';
import { openApiDocument } from './document.ts';
import { referencePage, STYLE } from './reference-page.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const CACHE_CONTROL = 'public, max-age=300';
const POLICY = `default-src 'none'; style-src 'sha256-${hash('sha256', STYLE, 'base64')}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
/** Where a client that knows nothing begins. */
const ROOT = JSON.stringify({ name: 'Agent and memory service', reference: '/reference', openapi: '/openapi.json' });

/** What the gateway says about its own contract, without a token: `/`, `/openapi.json` and `/reference`. */
export function contractRoutes(methods: readonly RestMethod[], publicUrl: string): LocalEntry[] {
  const document = openApiDocument(methods, publicUrl);
  return [
    fixed('/', ROOT, JSON_TYPE),
    fixed('/openapi.json', JSON.stringify(document), JSON_TYPE),
    fixed('/reference', referencePage(document), 'text/html; charset=utf-8', { 'content-security-policy': POLICY }),
  ];
}

function fixed(template: string, body: string, contentType: string, further: Record<string, string> = {}): LocalEntry {
  const etag = `"${hash('sha256', body, 'base64url')}"`;
  const headers = { ...further, 'content-type': contentType, 'cache-control': CACHE_CONTROL, etag };
  const reply = { status: 200, headers, body, compress: compressOnce() };
  return { verb: 'GET', template, route: { kind: 'local', reply: () => reply } };
}
