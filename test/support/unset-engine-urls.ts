/** `npm test` runs on the embedded engines, also in a shell where the URLs of servers are set for test:engines. */
export default function unsetEngineUrls(): void {
  for (const name of ['MONGODB_URL', 'REDIS_URL', 'KAFKA_BROKERS']) delete process.env[name];
}
