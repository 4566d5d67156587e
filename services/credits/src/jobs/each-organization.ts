const PAGE = 100;

/** Iterates once over the organizations that a paged PlatformLedger list returns; stops when the signal aborts. */
export async function* eachOrganization(
  list: (after: string, limit: number) => Promise<string[]>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  let after: string | undefined = '';
  while (after !== undefined) {
    const page: string[] = await list(after, PAGE);
    for (const organizationId of page) {
      if (signal.aborted) return;
      yield organizationId;
    }
    after = page.at(-1);
  }
}
