/** A text of a library's source that occurs once, and what takes its place. */
export type Change = [text: string, replacement: string];

/** @throws Error if the source is not the one that the changes were written for */
export function changed(source: string, changes: readonly Change[]): string {
  const found = changes.map(([text, replacement]) => ({ at: placeOf(text, source), text, replacement }));
  found.sort((one, other) => one.at - other.at);
  const pieces: string[] = [];
  let end = 0;
  for (const { at, text, replacement } of found) {
    if (at < end) throw new Error(`Two changes of a library's source overlap: ${text}`);
    pieces.push(source.slice(end, at), replacement);
    end = at + text.length;
  }
  return pieces.join('') + source.slice(end);
}

function placeOf(text: string, source: string): number {
  const at = source.indexOf(text);
  if (at < 0) throw new Error(`A library's source has nowhere: ${text}`);
  if (source.includes(text, at + 1)) throw new Error(`A library's source has more than once: ${text}`);
  return at;
}
