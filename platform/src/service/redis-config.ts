import { text } from '../core/config.ts';

/** Settings of the processes that use Redis: credits, and the gateway. */
export const redisConfig = {
  REDIS_URL: text({
    default: '',
    secret: true,
    description:
      'redis://[user:password@]host:port of the ledger, which needs MONGODB_URL, too, where its rows go, and of the ' +
      "gateways' counts of requests; empty: the embedded ledger, and counts through auth, of which AUTH_ADDRESS must " +
      'name each replica then.',
  }),
  REDIS_KEY_PREFIX: text({
    default: 'credits',
    form: ['at most 64 letters, digits, dots, _ or -', /^[\w.-]{1,64}$/],
    description: 'Beginning of every key in Redis.',
  }),
};
