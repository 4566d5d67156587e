/** Runs after the last test. */
export default async function tearDown(): Promise<void> {
  await globalThis.sharedStackHost?.close();
}
