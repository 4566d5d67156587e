import { newId } from 'platform/core/ids.ts';
import { Principal } from 'platform/core/principal.ts';
import { bytesOf, principalOf } from 'platform/rpc/principal-bytes.ts';

const ofUser = (organizationId: string, subject: string): Principal =>
  Principal.fromPartial({
    ...{ kind: 'USER', organizationId, subject, name: 'Ada', roles: ['admin'], groups: ['makers'] },
    ...{ tier: 'pro', limits: { memory_types: 5 } },
  });
const wireOf = (principal: Principal): Buffer => Buffer.from(Principal.encode(principal).finish());

describe('a principal on the wire', () => {
  it('is read as what was written, also after many others', () => {
    const [organizationId, subject] = [newId(), newId()];
    const sent = Array.from({ length: 3_000 }, (_, n) => ofUser(organizationId, n === 0 ? subject : newId()));
    for (const principal of [...sent, ...sent.slice(0, 10)]) {
      const read = principalOf(wireOf(principal));
      expect(read).toEqual(principal);
      expect(bytesOf(read)).toEqual(wireOf(principal));
    }
  });

  it('of one organization is never taken for another', () => {
    const subject = newId();
    const [one, other] = [newId(), newId()].map((organizationId) => ofUser(organizationId, subject));
    expect(principalOf(wireOf(one!)).organizationId).toBe(one!.organizationId);
    expect(principalOf(wireOf(other!)).organizationId).toBe(other!.organizationId);
  });

  it('cannot be changed by the handler of one call for those of others', () => {
    const bytes = wireOf(ofUser(newId(), newId()));
    const principal = principalOf(bytes);
    expect(() => (principal.organizationId = newId())).toThrow(TypeError);
    expect(() => principal.roles.push('owner')).toThrow(TypeError);
    expect(() => principal.groups.pop()).toThrow(TypeError);
    expect(() => (principal.limits['memory_types'] = 1_000)).toThrow(TypeError);
    expect(() => principal.memoryTypes.push('note')).toThrow(TypeError);
    expect(wireOf(principalOf(bytes))).toEqual(bytes);
  });

  it('keeps no hold on the message that it came in', () => {
    const bytes = wireOf(ofUser(newId(), newId()));
    const message = Buffer.concat([Buffer.alloc(100), bytes]);
    const read = principalOf(message.subarray(100));
    message.fill(0);
    expect(bytesOf(read)).toEqual(bytes);
    expect(wireOf(principalOf(bytes))).toEqual(bytes);
  });

  it('is nobody when its bytes are no principal, or absent', () => {
    for (const bytes of [undefined, Buffer.from('no principal'), Buffer.alloc(0)])
      expect(principalOf(bytes)).toEqual(Principal.fromPartial({}));
  });

  it('may be longer than those that are kept', () => {
    const long = { ...ofUser(newId(), newId()), groups: Array.from({ length: 200 }, () => newId()) };
    expect(principalOf(wireOf(long))).toEqual(long);
    expect(bytesOf(long)).toEqual(wireOf(long));
  });
});
