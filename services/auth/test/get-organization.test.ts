import { newId } from 'platform/core/ids.ts';
import { expectError, startAuth, type AuthFixture } from './fixture.ts';

describe('GetOrganization', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());
  const get = (idOrName: string) => fixture.auth.getOrganization({ idOrName }, fixture.asOperator());

  it('finds it by id and by name regardless of case', async () => {
    const { organization } = await fixture.auth.createOrganization(
      { name: 'Findable', tier: 'starter' },
      fixture.asOperator(),
    );
    for (const idOrName of [organization!.id, 'Findable', 'FINDABLE'])
      expect((await get(idOrName)).organization).toEqual(organization);
  });

  it.each(['nobody', newId()])('rejects %j with NOT_FOUND', (idOrName) => expectError(get(idOrName), 'NOT_FOUND'));
  it('rejects an empty name', () => expectError(get(''), 'INVALID_REQUEST'));
});
