import { AgentFault } from '../network/network-run.ts';
import type { ModelAnswer, PostToModel } from './model.ts';

/** A usual token has about as many bytes. */
const BYTES_OF_TOKEN = 4;
/** A count above it is not believed. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Counts the tokens of a call as its endpoint reports them, or as many as texts of that length usually have. A call
 * that is cut off counts what was sent, because the provider may charge it; one that the endpoint refused counts none.
 * @param ask asks a model by the post that it is given
 */
export async function countTokens(
  usage: { tokensIn: number; tokensOut: number },
  post: PostToModel,
  ask: (post: PostToModel) => Promise<ModelAnswer>,
): Promise<ModelAnswer> {
  const before = usage.tokensIn;
  const answer = await ask(async (request) => {
    usage.tokensIn = before + tokensOf(request.body);
    try {
      return await post(request);
    } catch (error) {
      if (error instanceof AgentFault) usage.tokensIn = before;
      throw error;
    }
  });
  if (isCount(answer.tokensIn)) usage.tokensIn = before + answer.tokensIn;
  usage.tokensOut += isCount(answer.tokensOut) ? answer.tokensOut : tokensOf(answer.text);
  return answer;
}

const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_OF_TOKEN);

const isCount = (count: number | undefined): count is number =>
  Number.isSafeInteger(count) && count! >= 0 && count! <= MAX_TOKENS;
