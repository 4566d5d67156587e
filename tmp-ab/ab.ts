import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { keyFileOf, keyFolderOf, peersFileOf } from 'platform/rpc/keys.ts';
import { freePorts } from '../test/support/addresses.ts';
import { startStack } from '../test/support/stack.ts';
const stack = await startStack({ env: {}, replicas: 1 });
const tenant = await stack.tenant();
await tenant.request('POST', '/api/memory/types', { type: 'item', jsonSchema: {} });
const { body } = await tenant.request('POST', '/api/memory/objects', { type: 'item', key: 'a', content: { name: 'a', tags: ['a', 'b'], score: 4.5 } });
for (let i = 0; i < 25; i++) await tenant.request('POST', '/api/memory/objects', { type: 'item', key: 'k' + i, content: { name: 'a', tags: ['a', 'b'], score: 4.5 } });
const start = async (root: string) => {
  const [port] = await freePorts(1);
  const keys = keyFolderOf(stack.folder);
  const child = spawn(process.execPath, [root + '/gateway/src/main.ts'], {
    env: { ...process.env, LOG_LEVEL: 'silent', ...stack.env, KEY_FILE: keyFileOf(keys, 'gateway'), PEERS_FILE: peersFileOf(keys), GATEWAY_LISTEN: '127.0.0.1:' + port },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ ready }] = (await once(child, 'message')) as any;
  return { url: 'http://' + ready, child };
};
const cpu = (pid: number) => { const f = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' '); let t = 0; return t || Number(f[0]) / 1000; };
const systems = { old: await start('/tmp/h-old'), new: await start('/work/h-gateway') };
const results: Record<string, number[]> = {};
for (const path of ['/health', `/api/memory/objects/${body.id}`, '/api/memory/objects?type=item'])
  for (let round = 0; round < 9; round++)
    for (const [name, { url, child }] of Object.entries(systems)) {
      const before = cpu(child.pid as number);
      const r = await autocannon({ url: url + path, connections: 32, duration: 2, headers: { authorization: `Bearer ${tenant.token}` } });
      if (r.non2xx + r.errors) console.log('failed', r.non2xx, r.errors);
      if (round > 1) (results[`${path.slice(0, 20)} ${name}`] ??= []).push((cpu(child.pid as number) - before) / r.requests.total);
    }
for (const [k, v] of Object.entries(results)) { v.sort((a, b) => a - b); console.log(k, 'min', Math.round(v[0] as number), 'median', Math.round(v[v.length >> 1] as number)); }
for (const { child } of Object.values(systems)) child.kill();
await stack.stop();
process.exit();
