import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { MongoNetworkError, MongoServerError, type ClientSession, type MongoClient } from 'mongodb';
import { attemptWatcher } from 'platform/store/mongo/attempts.ts';

/** The counts of a write whose only attempt failed with this error. */
function attemptsAfter(failure: Error) {
  const client = new EventEmitter();
  const lsid = { id: 'session' };
  const attempts = attemptWatcher(client as MongoClient)({ id: lsid } as unknown as ClientSession);
  client.emit('commandStarted', { command: { lsid }, requestId: 1 });
  client.emit('commandFailed', { requestId: 1, failure });
  return attempts;
}

/** The error that Node gives for a write to a socket that the other side has ended. */
async function writeToEndedSocket(): Promise<Error> {
  const server = createServer((accepted) => accepted.end()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1').resume();
  try {
    await once(socket, 'end');
    socket.write('insert');
    return ((await once(socket, 'error')) as [Error])[0];
  } finally {
    socket.destroy();
    server.close();
  }
}

describe('a failed attempt to write', () => {
  it('on a socket that the other side had ended was never sent', async () => {
    const failure = await writeToEndedSocket();
    expect(failure).toMatchObject({ code: 'EPIPE' });
    expect(attemptsAfter(failure)).toEqual({ sent: 1, withoutEffect: 1, unanswered: 0 });
  });

  it('that the operating system or the network interrupted counts as unanswered', () => {
    const cut = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', errno: -32, syscall: 'write' });
    expect(attemptsAfter(cut)).toEqual({ sent: 1, withoutEffect: 0, unanswered: 1 });
    expect(attemptsAfter(new MongoNetworkError('connection closed'))).toEqual({
      sent: 1,
      withoutEffect: 0,
      unanswered: 1,
    });
  });

  it('that the server rejected had no effect; one that failed on the server was answered', () => {
    expect(attemptsAfter(new MongoServerError({ code: 10107, message: 'not primary' }))).toEqual({
      sent: 1,
      withoutEffect: 1,
      unanswered: 0,
    });
    expect(attemptsAfter(new MongoServerError({ code: 64, message: 'waiting for replication timed out' }))).toEqual({
      sent: 1,
      withoutEffect: 0,
      unanswered: 0,
    });
  });
});
