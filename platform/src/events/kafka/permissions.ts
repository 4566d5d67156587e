import type { Cluster, Kafka } from 'kafkajs';
import { withTimeout } from '../../core/with-timeout.ts';
import type { Log } from '../../core/log.ts';
import { StartError } from '../../core/start-error.ts';
import { rootOf } from './client.ts';

/** No topic has one of this number, so what is sent there is refused: for its authority first, which is all that is asked. */
const NO_PARTITION = 2_147_483_647;
const WITHIN_MS = 5_000;

interface Rights {
  /** Topics to write to, asked by messages that no partition takes. */
  writes: readonly string[];
  /** Topics to read, and the groups whose places are kept there, asked by the commit of a partition that no topic has. */
  reads?: readonly { topic: string; groupId: string }[];
}

/**
 * Asks one broker, whichever, by single requests that change nothing.
 * @throws StartError for the first right that is missing
 */
export async function verifyRights(kafka: Kafka, log: Log, rights: Rights): Promise<void> {
  const cluster = connectionsOf(kafka);
  const asked = ask(cluster, rights);
  try {
    await withTimeout(asked, WITHIN_MS);
  } catch (error) {
    asked.catch(() => undefined);
    if (error instanceof StartError) throw error;
    // what does not answer now says nothing of rights, and is waited for where it is used
    log.warn(
      { error },
      'Kafka was not heard about the rights of this service: one that is missing shows when it is needed',
    );
  } finally {
    void cluster.disconnect().catch(() => undefined);
  }
}

async function ask(cluster: Cluster, { writes, reads = [] }: Rights): Promise<void> {
  await cluster.connect();
  await cluster.refreshMetadata();
  const broker = await cluster.findBroker({ nodeId: String(cluster.getNodeIds()[0]) });
  for (const { topic, groupId } of reads) {
    const type = await refusalOf(
      broker.offsetCommit({
        groupId,
        groupGenerationId: -1,
        memberId: '',
        topics: [{ topic, partitions: [{ partition: NO_PARTITION, offset: '0' }] }],
      }),
    );
    if (type === 'GROUP_AUTHORIZATION_FAILED')
      throw new StartError(`Kafka does not let this service READ as the consumer group ${groupId}`);
    if (type === 'TOPIC_AUTHORIZATION_FAILED')
      throw new StartError(`Kafka does not let this service READ the topic ${topic}`);
  }
  for (const topic of writes) {
    const type = await refusalOf(
      broker.produce({
        topicData: [{ topic, partitions: [{ partition: NO_PARTITION, firstSequence: 0, messages: [] }] }],
      }),
    );
    if (type === 'TOPIC_AUTHORIZATION_FAILED')
      throw new StartError(`Kafka does not let this service WRITE to the topic ${topic}`);
  }
}

/** kafkajs hands its connections out to partition assigners alone. */
function connectionsOf(kafka: Kafka): Cluster {
  const handed: Cluster[] = [];
  kafka.consumer({
    groupId: 'rights',
    partitionAssigners: [
      ({ cluster }) => {
        handed.push(cluster);
        return undefined as never;
      },
    ],
  });
  return handed[0]!;
}

/** @throws what is no answer of the broker */
const refusalOf = (request: Promise<unknown>): Promise<string | undefined> =>
  request.then(
    () => undefined,
    (error: unknown) => {
      const { type } = rootOf(error);
      if (type === undefined) throw error;
      return type;
    },
  );
