/** `npm test` is about the embedded engines: servers that the shell names, for example for test:engines, are not meant. */
export default function (): void {
  for (const name of ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS']) delete process.env[name];
}
