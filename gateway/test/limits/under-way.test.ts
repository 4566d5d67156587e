import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { principalWith } from 'platform/service/testing.ts';
import { makeUnderWay } from '../../src/limits/under-way.ts';

it('what a user has under way in one organization takes no place of the same user in another one', () => {
  const underWay = makeUnderWay({ perToken: 1, perOrganization: 2 });
  const enterIn = (organizationId: string): void =>
    underWay.enter(
      principalWith({ kind: 'USER', organizationId, subject: 'ada' }),
      new ServerResponse(new IncomingMessage(new Socket())),
    );
  enterIn('one');
  enterIn('other');
  expect(() => enterIn('other')).toThrow('of one token');
});
