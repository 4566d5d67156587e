/** A text of a library's source that occurs once, and what takes its place. */
export type Change = [text: string, replacement: string];

/** @throws Error if the source is not the one that the changes were written for */
export function changed(source: string, changes: Change[]): string {
  let result = source;
  for (const [text, replacement] of changes) {
    const parts = result.split(text);
    if (parts.length !== 2) throw new Error(`A library's source has ${parts.length - 1} times: ${text}`);
    result = parts.join(replacement);
  }
  return result;
}
