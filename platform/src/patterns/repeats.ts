import type { AST } from '@eslint-community/regexpp';

/** A higher count is refused as such; what else a pattern may repeat is bounded by its size. */
export const MAX_COUNT = 10_000;
/** RE2 takes no higher count, nor counts within counts that make more. */
const MAX_IN_RE2 = 1_000;
/** From so many optional repetitions on, a chain of them is written as blocks, which need half as many instructions. */
const MANY = 500;
const BLOCK = 250;

/** A piece of a pattern in the syntax of RE2 that a quantifier may follow. */
export interface Piece {
  text: string;
  /** The product of the counts in it. */
  counts: number;
}

/**
 * The piece, repeated. However it is written, it matches the same texts.
 * @param canTakeApart whether it may stand more than once in the pattern, and find its matches in another order
 * @throws Error for counts that RE2 does not take as they are
 */
export function repeated(piece: Piece, { min, max, greedy }: AST.Quantifier, canTakeApart: boolean): Piece {
  const lazy = greedy ? '' : '?';
  const simple = ['0,∞', '*', '1,∞', '+', '0,1', '?'];
  const known = simple.indexOf(`${min},${max === Infinity ? '∞' : max}`);
  if (known !== -1) return { text: `${piece.text}${simple[known + 1]}${lazy}`, counts: piece.counts };
  const counts = piece.counts * Math.max(1, max === Infinity ? min : max);
  const isTaken = counts <= MAX_IN_RE2 && (max === Infinity || max - min < MANY);
  if (isTaken || (counts <= MAX_IN_RE2 && !canTakeApart)) {
    const range = max === Infinity ? `${min},` : min === max ? `${min}` : `${min},${max}`;
    return { text: `${piece.text}{${range}}${lazy}`, counts };
  }
  if (!canTakeApart)
    throw new Error(
      `a group is repeated more than ${MAX_IN_RE2} times; only a single character may be repeated so often`,
    );
  const rest = max === Infinity ? `${piece.text}*${lazy}` : optional(piece, max - min, lazy);
  return { text: `(?:${required(piece, min)}${rest})`, counts: MAX_IN_RE2 };
}

function required({ text, counts }: Piece, times: number): string {
  const most = Math.max(1, Math.floor(MAX_IN_RE2 / counts));
  const rest = times % most;
  return `${text}{${most}}`.repeat(Math.floor(times / most)) + (rest > 0 ? `${text}{${rest}}` : '');
}

/** Blocks, each of which needs the one before, and after any of them as many single repetitions as fill a block. */
function optional(piece: Piece, times: number, lazy: string): string {
  const block = Math.max(1, Math.floor(BLOCK / piece.counts));
  const blocks = Math.max(0, Math.floor((times + 1) / block) - 1);
  const single = times - blocks * block;
  const text = `${piece.text}{${block}}`;
  return (
    `(?:${text}`.repeat(blocks) + `)?${lazy}`.repeat(blocks) + (single > 0 ? `${piece.text}{0,${single}}${lazy}` : '')
  );
}

/** About how many instructions a pattern has when its repetitions are written out, nested ones too. */
export function expandedSizeOf(node: AST.Pattern | AST.Alternative | AST.Element): number {
  switch (node.type) {
    case 'Alternative':
      return node.elements.reduce((sum, each) => sum + expandedSizeOf(each), 0);
    case 'Quantifier': {
      // Nothing counts as something here, because RE2 writes it out as well.
      const size = Math.max(1, expandedSizeOf(node.element));
      if (node.max === Infinity) return size * Math.max(1, node.min) + 1;
      const optionals = node.max - node.min;
      return size * Math.max(1, node.max) + (optionals < MANY ? optionals : BLOCK * size);
    }
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup':
      return 2 + sizeOfAlternatives(node.alternatives);
    case 'Assertion':
      return 'alternatives' in node ? 4 + sizeOfAlternatives(node.alternatives) : 1;
    default:
      return 1;
  }
}
const sizeOfAlternatives = (alternatives: AST.Alternative[]): number =>
  alternatives.reduce((sum, each) => sum + expandedSizeOf(each), alternatives.length - 1);
