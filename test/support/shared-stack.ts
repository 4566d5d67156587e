import { closedInTheEnd } from 'platform/service/test-end.ts';
import { connect, type RunningStack } from './stack.ts';

/**
 * The stack that all test files use which neither stop, kill nor configure a process: the first of them starts it, and
 * it stops after the last (shared-stack-host.ts). Each file makes its own tenants. Call it once in a file.
 */
export async function sharedStack(): Promise<RunningStack> {
  const host = `http://127.0.0.1:${process.env.TEST_SHARED_STACK_PORT}`;
  const response = await fetch(`${host}/use`, { method: 'POST' });
  if (!response.ok) throw new Error(`The shared stack has not started: ${await response.text()}`);
  const stack = connect((await response.json()) as Parameters<typeof connect>[0]);
  closedInTheEnd(async () => {
    stack.operator.close();
    await fetch(`${host}/leave`, { method: 'POST' });
  });
  return stack;
}
