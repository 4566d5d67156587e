import type { Secret } from 'proto/agents/v1/agents.ts';
import type { SecretRecord } from './store.ts';

export const secretMessage = ({ name, previous, createdAt, updatedAt }: SecretRecord, now: string): Secret => ({
  name,
  createdAt,
  updatedAt,
  previousUntil: previous && previous.until > now ? previous.until : undefined,
});
