import { replicaAddresses } from 'platform/rpc/replica-addresses.ts';

const NAMES: Readonly<Record<string, { address: string; family: number }[]>> = {
  auth: [
    { address: '10.0.0.1', family: 4 },
    { address: '10.0.0.2', family: 4 },
  ],
  both: [
    { address: '::1', family: 6 },
    { address: '127.0.0.1', family: 4 },
  ],
  six: [{ address: 'fd00::1', family: 6 }],
};
const resolve = async (host: string) => {
  const found = NAMES[host];
  if (!found) throw new Error(`ENOTFOUND ${host}`);
  return found;
};

it.each<[string, string[]]>([
  ['auth:50051', ['10.0.0.1:50051', '10.0.0.2:50051']],
  ['both:50051', ['127.0.0.1:50051']],
  ['six:50051', ['[fd00::1]:50051']],
  ['auth:50051,10.0.0.2:50051,10.0.0.3:1', ['10.0.0.1:50051', '10.0.0.2:50051', '10.0.0.3:1']],
  ['[::1]:50051', ['[::1]:50051']],
  ['nobody:50051', ['nobody:50051']],
])('%s names each replica once', async (addresses, expected) => {
  expect(await replicaAddresses(addresses.split(','), resolve)).toEqual(expected);
});
