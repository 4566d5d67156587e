import { EventEmitter, once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { MongoNetworkError, MongoServerError, type ClientSession, type MongoClient } from 'mongodb';
import { watchAttempts } from 'platform/store/mongo/attempts.ts';

/** What is told of a write whose only attempt failed like this. */
function attemptsAfter(failure: Error) {
  const client = new EventEmitter();
  const lsid = { id: 'session' };
  const attempts = watchAttempts(client as MongoClient)({ id: lsid } as unknown as ClientSession);
  client.emit('commandStarted', { command: { lsid }, requestId: 1 });
  client.emit('commandFailed', { requestId: 1, failure });
  return attempts;
}

/** The error of a write to a socket that the other side has ended, as Node gives it. */
async function refusedByNode(): Promise<Error> {
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

describe('an attempt of a write', () => {
  it('that met a socket which the other side had ended never left', async () => {
    const failure = await refusedByNode();
    expect(failure).toMatchObject({ code: 'EPIPE' });
    expect(attemptsAfter(failure)).toEqual({ sent: 1, refused: 1, unheard: 0 });
  });

  it('that the system cut off may have left', () => {
    const cut = Object.assign(new Error('write EPIPE'), { code: 'EPIPE', errno: -32, syscall: 'write' });
    expect(attemptsAfter(cut)).toEqual({ sent: 1, refused: 0, unheard: 1 });
    expect(attemptsAfter(new MongoNetworkError('connection closed'))).toEqual({ sent: 1, refused: 0, unheard: 1 });
  });

  it('that the server refused wrote nothing; one that it failed was heard', () => {
    expect(attemptsAfter(new MongoServerError({ code: 10107, message: 'not primary' }))).toEqual({
      sent: 1,
      refused: 1,
      unheard: 0,
    });
    expect(attemptsAfter(new MongoServerError({ code: 64, message: 'waiting for replication timed out' }))).toEqual({
      sent: 1,
      refused: 0,
      unheard: 0,
    });
  });
});
