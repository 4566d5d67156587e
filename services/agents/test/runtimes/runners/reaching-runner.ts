import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns';
import { connect, createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import type { Assignment } from '../../../src/runtimes/runners/runner-child.ts';
import { finished, type Send } from './lies.ts';

// A runner as somebody who has broken out of V8 would use it: it goes where its args say, and reports how far it got.

/** What listens on this machine, and the process that listens there. */
export interface Targets {
  tcpPort: number;
  udpPort: number;
  nameServerPort: number;
  unixPath: string;
  pid: number;
}
/** `reached`, or the code of the error. */
export type Reached = Record<string, string>;

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error);
const attempt = (start: (done: () => void, fail: (error: unknown) => void) => void): Promise<string> =>
  new Promise<void>((resolve, reject) => start(resolve, reject)).then(() => 'reached', codeOf);

const attempts = {
  tcp: ({ tcpPort }) =>
    attempt((done, fail) => void connect(tcpPort, '127.0.0.1').once('data', done).once('error', fail)),
  tcpOfAThread: ({ tcpPort }) =>
    attempt((done, fail) => {
      const program = `
        const socket = require('node:net').connect(${tcpPort}, '127.0.0.1');
        const { parentPort } = require('node:worker_threads');
        socket.once('data', () => parentPort.postMessage('reached'));
        socket.once('error', ({ code }) => parentPort.postMessage(code));`;
      const worker = new Worker(program, { eval: true });
      worker.once('message', (code) => (code === 'reached' ? done() : fail({ code })));
    }),
  udp: ({ udpPort }) =>
    attempt((done, fail) => {
      const socket = createSocket('udp4').once('message', done).once('error', fail);
      socket.send('ping', udpPort, '127.0.0.1', (error) => error && fail(error));
    }),
  // It answers that there is no such name.
  nameServer: ({ nameServerPort }) =>
    attempt((done, fail) => {
      const resolver = new Resolver({ tries: 1 });
      resolver.setServers([`127.0.0.1:${nameServerPort}`]);
      resolver.resolve4('agents.example', (error) => (error?.code === 'ENOTFOUND' ? done() : fail(error)));
    }),
  unixSocket: ({ unixPath }) => attempt((done, fail) => void connect(unixPath).once('data', done).once('error', fail)),
  listening: () => attempt((done, fail) => void createServer().listen(0, '127.0.0.1', done).once('error', fail)),
  signal: ({ pid }) =>
    attempt((done) => {
      process.kill(pid, 0);
      done();
    }),
  /** What it may do. */
  signalToItself: () =>
    attempt((done) => {
      process.kill(process.pid, 0);
      done();
    }),
} satisfies Record<string, (targets: Targets) => Promise<string>>;

process.on('disconnect', () => process.exit());
process.on('message', async ({ id, runtime: { source }, argsText }: Assignment) => {
  const send: Send = (report) => void process.send!(report);
  if (source !== 'reach') return finished({})(id, send);
  const targets = JSON.parse(argsText!) as Targets;
  const reached: Reached = {};
  for (const [name, start] of Object.entries(attempts)) reached[name] = await start(targets);
  finished({ outputText: JSON.stringify(reached) })(id, send);
});
