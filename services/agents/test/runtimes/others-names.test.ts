import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { requestFor } from './request-for.ts';
import { testPool } from './runners/pool-fixture.ts';
import { SECRET, testRuntimes } from './test-runtimes.ts';
const runtimes = testRuntimes(testPool(), { schedule: fairScheduler(), secretValues: () => Promise.resolve([SECRET]) });
afterAll(() => runtimes.stop());
it('x', async () => {
  const runtime = { type: 'script', language: 'javascript', source: 'const run = (args) => args;' };
  let bad = 0;
  for (let i = 0; i < 20; i++)
    for (const [org, name] of [['one', '\\'], ['two', '"'], ['two', '\n']] as const) {
      const args = { before: 1, [name]: 2 };
      const r = await runtimes.byType.script!.run({ ...requestFor(runtime, args), organizationId: org });
      if ((r as any).outputText !== JSON.stringify(args)) bad++;
    }
  expect(bad).toBe(0);
});
