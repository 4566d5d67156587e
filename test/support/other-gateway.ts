import { request } from './request.ts';

/**
 * Sends a request as a client does that knows all gateways: when one takes no connection, nothing was sent, and it asks
 * the next one.
 */
export const askOtherGateway =
  (gateways: readonly string[]): typeof request =>
  async (at, ...given) => {
    const inTurn = [at, ...gateways.filter((other) => other !== at)];
    for (const gateway of inTurn.slice(0, -1))
      try {
        return await request(gateway, ...given);
      } catch (error) {
        if (!isRefused(error)) throw error;
      }
    return request(inTurn.at(-1)!, ...given);
  };

// no `instanceof`: the errors of fetch are of another realm than those of a test
const isRefused = (error: unknown): boolean =>
  (error as { cause?: { code?: string } } | undefined)?.cause?.code === 'ECONNREFUSED';
