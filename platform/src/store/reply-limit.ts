import { ServiceError } from '../core/errors.ts';

/** @throws ServiceError REPLY_TOO_LARGE when documents of so many bytes are more than the caller takes */
export function requireFit(bytes: number, maxBytes: number = Infinity): void {
  if (bytes > maxBytes) throw new ServiceError('REPLY_TOO_LARGE', undefined, { facts: { bytes } });
}
