import type { CallContext } from 'platform/rpc/call.ts';
import { actorOf } from 'platform/core/principal.ts';
import type { Author } from './ledger/ledger.ts';

export const authorOf = ({ principal, requestId }: CallContext): Author => ({ actor: actorOf(principal), requestId });
