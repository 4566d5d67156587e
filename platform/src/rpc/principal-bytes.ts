import { Principal } from '../core/principal.ts';

/** Calls of the same few principals come again and again, and to read one costs as much as the rest of a frame. */
const MAX_KEPT = 1_000;
const MAX_KEPT_BYTES = 1_024;

/** By the bytes; nothing can change those that are kept. */
const kept = new Map<string, Principal>();
const bytesOfKept = new WeakMap<Principal, Buffer>();

/** An empty principal, which no method accepts, when the bytes cannot be decoded. */
export function principalOf(bytes: Buffer | undefined): Principal {
  if (bytes === undefined || bytes.length > MAX_KEPT_BYTES) return decode(bytes ?? Buffer.alloc(0));
  const key = bytes.toString('latin1');
  let principal = kept.get(key);
  if (principal === undefined) {
    principal = decode(bytes);
    const { roles, groups, limits, memoryTypes, scopes } = principal;
    for (const list of [roles, groups, limits, memoryTypes, scopes]) Object.freeze(list);
    Object.freeze(principal);
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value!);
    kept.set(key, principal);
    // not from Node's pool, of which a slice keeps 64 KiB
    const own = Buffer.allocUnsafeSlow(bytes.length);
    bytes.copy(own);
    bytesOfKept.set(principal, own);
  }
  return principal;
}

export const bytesOf = (principal: Principal): Buffer =>
  bytesOfKept.get(principal) ?? Buffer.from(Principal.encode(principal).finish());

function decode(bytes: Buffer): Principal {
  try {
    return Principal.decode(bytes);
  } catch {
    return Principal.decode(new Uint8Array());
  }
}
