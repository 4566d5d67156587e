import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { hashOf, type AuditFacts } from '../src/audit/chain.ts';

it('the hash of an audit entry is that of the canonical JSON of its members that are neither null nor absent', () => {
  const text = fc.string({ unit: 'binary' });
  const facts = fc.record(
    {
      ...{ _id: text, organizationId: text, at: text, action: text, outcome: text, actorKind: text, actorId: text },
      ...{ actorName: text, actorVia: text, targetType: fc.option(text), targetId: fc.option(text) },
      ...{ code: fc.option(text), count: fc.nat(), requestId: text, changes: text },
    },
    { noNullPrototype: true, requiredKeys: ['_id', 'organizationId', 'at', 'action', 'outcome', 'count', 'requestId'] },
  );
  fc.assert(
    fc.property(facts, text, (entry, previousHash) => {
      const present = Object.entries({ ...entry, previousHash }).filter(([, value]) => value !== null);
      const expected = createHash('sha256')
        .update(canonicalJson(Object.fromEntries(present)))
        .digest('base64url');
      expect(hashOf(entry as AuditFacts, previousHash)).toBe(expected);
    }),
  );
});
