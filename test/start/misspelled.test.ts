import { misspelledSettings } from '../../launcher/src/misspelled.ts';

const SETTINGS = new Set(['DATA_DIR', 'KAFKA_BROKERS', 'MONGODB_URL', 'GATEWAY_LISTEN', 'MEMORY_LISTEN', 'REDIS_URL']);
const sentence = (name: string, meant: string): string =>
  `${name} is no setting, so it changes nothing; did you mean ${meant}?`;

it.each([
  ['KAFKA_BROKER', 'KAFKA_BROKERS'],
  ['MONGO_URL', 'MONGODB_URL'],
  ['DATADIR', 'DATA_DIR'],
  ['GATEWAY_LISTNE', 'GATEWAY_LISTEN'],
])('%s is pointed out as %s, without its value', (name, meant) => {
  expect(misspelledSettings(SETTINGS, { [name]: 'hidden' })).toEqual([sentence(name, meant)]);
});

it('settings, what the command line reads, and what other programs read are passed over', () => {
  const names = [
    ...SETTINGS,
    'MEMORY_ADDRESS',
    'GATEWAY_ADDRESS',
    'ORGANIZATION',
    'HOME',
    'PATH',
    'TZ',
    'DATABASE_URL',
  ];
  expect(misspelledSettings(SETTINGS, Object.fromEntries(names.map((name) => [name, 'x'])))).toEqual([]);
  expect(misspelledSettings(SETTINGS, { KAFKA_BROKER: '' })).toEqual([]);
});
