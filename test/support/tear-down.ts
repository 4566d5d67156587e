import { rmSync } from 'node:fs';

/** Runs after the last test. */
export default async function tearDown(): Promise<void> {
  await globalThis.sharedStackHost?.close();
  rmSync(process.env.TEST_KEYS!, { recursive: true });
}
