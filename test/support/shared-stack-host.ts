import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startStack, type Stack } from './stack.ts';

export interface SharedStackHost {
  close(): Promise<void>;
}

declare global {
  // what set-up.ts opens, tear-down.ts closes: both run in Jest's own process
  var sharedStackHost: SharedStackHost | undefined;
}

/**
 * Runs in Jest's own process, because each test file runs in a context of its own, in one of several workers. Starts
 * the shared stack at the first POST /use, and stops it when as many files have left it as TEST_SHARED_STACK_FILES says
 * (jest.sequencer.mjs), so that its idle processes do not slow down the tests that follow.
 */
export async function openSharedStackHost(): Promise<SharedStackHost> {
  let started: Promise<Stack> | undefined;
  let left = 0;
  const server: Server = createServer((req, res) => {
    // a file that takes as long to load as this server keeps connections would send on one that is being closed
    const reply = (status: number, body: string): void => void res.writeHead(status, { connection: 'close' }).end(body);
    if (req.url === '/use') {
      started ??= startStack();
      started.then(
        ({ baseUrls, folder, env }) => reply(200, JSON.stringify({ baseUrls, folder, env })),
        (error: unknown) => reply(500, String(error)),
      );
    } else {
      left++;
      reply(204, '');
      if (left === Number(process.env.TEST_SHARED_STACK_FILES)) void stop();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.env.TEST_SHARED_STACK_PORT = String((server.address() as AddressInfo).port);

  const stop = async (): Promise<void> => (await started?.catch(() => undefined))?.stop();
  return {
    async close() {
      server.closeAllConnections();
      server.close();
      await stop();
    },
  };
}
