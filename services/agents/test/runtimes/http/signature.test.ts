import { createHmac } from 'node:crypto';
import { faultOfSigningSecret, signatureHeaders, signingKeyOf } from '../../../src/runtimes/http/signature.ts';

it('signs the example of the specification of Standard Webhooks as it says', () => {
  const key = signingKeyOf('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD');
  const body = '{"email":"test@example.com","username":"test_user"}';
  const id = 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk';
  expect(signatureHeaders({ id, timestamp: 1_649_367_553, body }, [key!])).toEqual({
    'webhook-id': id,
    'webhook-timestamp': '1649367553',
    'webhook-signature': 'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
  });
});

it('signs by every key', () => {
  const keys = ['a', 'b'].map((letter) => Buffer.alloc(32, letter));
  const signature = signatureHeaders({ id: 'i', timestamp: 7, body: '{}' }, keys)['webhook-signature'];
  const by = (key: Buffer): string => `v1,${createHmac('sha256', key).update('i.7.{}').digest('base64')}`;
  expect(signature).toBe(keys.map(by).join(' '));
});

it.each([
  ['whsec_' + Buffer.alloc(24).toString('base64'), 24],
  ['whsec_' + Buffer.alloc(64).toString('base64'), 64],
  ['whsec_' + Buffer.alloc(25).toString('base64').replace(/=+$/, ''), 25],
])('%s is a key of %d bytes', (secret, length) => expect(signingKeyOf(secret)).toHaveLength(length));

it.each([
  '',
  'secret',
  'whsec_',
  'whsec_' + Buffer.alloc(23).toString('base64'),
  'whsec_' + Buffer.alloc(65).toString('base64'),
  'whsec_not base64 but as long as a key has to be',
  Buffer.alloc(32).toString('base64'),
])('%s is none', (secret) => expect(signingKeyOf(secret)).toBeUndefined());

const KEY = Buffer.alloc(32, '\xff\xfe', 'latin1').toString('base64');

it.each([`whsec_${KEY}`, `whsec_${Buffer.alloc(24).toString('base64')}`])('%s may sign', (secret) =>
  expect(faultOfSigningSecret(secret)).toBeUndefined(),
);

it.each([
  ['no padding', KEY.replace('=', ''), 'padded'],
  ['too much padding', `${KEY}=`, 'padded'],
  ['padding where none belongs', `${Buffer.alloc(24).toString('base64')}=`, 'padded'],
  ['letters of base64url', KEY.replaceAll('/', '_').replaceAll('+', '-'), 'in base64'],
  ['bits behind the end', KEY.replace(/.=$/, '9='), 'in base64'],
  ['a line break', `${KEY.slice(0, 20)}\n${KEY.slice(20)}`, 'in base64'],
  ['a blank at the end', `${KEY} `, 'in base64'],
])('a secret with %s is refused when it is set or an agent is applied', (_what, text, message) =>
  expect(faultOfSigningSecret(`whsec_${text}`)).toContain(message),
);
