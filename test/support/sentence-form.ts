/** A sentence that begins like this does not say what it is about. */
const NO_SUBJECT =
  /^(must|may|can|cannot|is|are|was|has|have|needs|does|should|takes|exceeds|contains|expected|invalid|missing)\b/;
/** "roles.0", "data/items", "instance": names of the program, not of the request. */
const INTERNAL = /\b[a-z]\w*\.\d+\b|\bdata\/|\binstance\b|\bundefined\b|\bNaN\b|\[object /;

interface Refusal {
  error: string;
  details?: readonly { message: string }[];
}

/** The sentences of a refusal that a user could not read: without a subject, or with what only the program knows. */
export const unreadableSentences = ({ error, details = [] }: Refusal): string[] =>
  [error, ...details.map(({ message }) => message)].filter(
    (sentence) => NO_SUBJECT.test(sentence) || INTERNAL.test(sentence) || /^[a-z]+$/.test(sentence),
  );
