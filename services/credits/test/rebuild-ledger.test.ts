import { newId } from 'platform/core/ids.ts';
import { startCredits } from './fixture.ts';

describe('rebuild-ledger', () => {
  const credits = startCredits();

  it('is not supported by the embedded engine, and changes nothing there', async () => {
    const organizationId = await credits.organizationWith(5);
    const { client, options } = credits.operator(organizationId);
    await expect(client.rebuildLedger({}, options())).rejects.toMatchObject({
      reason: 'NOT_SUPPORTED',
      message: expect.stringContaining('nothing to rebuild'),
    });
    expect(await credits.agents(organizationId).balance()).toMatchObject({ availableMicros: 5 });
  });
  it('is for operators only', async () => {
    const { client, options } = credits.agents(newId());
    await expect(client.rebuildLedger({}, options())).rejects.toMatchObject({ reason: 'FORBIDDEN' });
  });
});
