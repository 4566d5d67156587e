import type { Broker, Cluster, Kafka } from 'kafkajs';
import { inTime } from '../in-time.ts';
import type { Log } from '../log.ts';
import { StartError } from '../start-error.ts';
import { rootOf } from './kafka-client.ts';

/** No topic has one of this number, so what is sent there is refused: for its authority first, which is all that is asked. */
const NO_PARTITION = 2_147_483_647;
const WITHIN_MS = 5_000;

interface Asked {
  kafka: Kafka;
  log: Log;
}

interface Reading {
  topic: string;
  groupId: string;
}

/** Asks whether these topics may be written to, by messages that no partition takes. @throws StartError */
export const verifyMayWrite = ({ kafka, log }: Asked, topics: readonly string[]): Promise<void> =>
  asking({ kafka, log }, 'authority', async (broker) => {
    for (const topic of topics) {
      const type = await refusalOf(broker.produce({ topicData: [{ topic, partitions: [{ partition: NO_PARTITION, firstSequence: 0, messages: [] }] }] }));
      if (type === 'TOPIC_AUTHORIZATION_FAILED') throw new StartError(`Kafka does not let this service WRITE to the topic ${topic}`);
    }
  });

/** Asks whether the group may read the topic and keep its place there, by the commit of a partition that no topic has. @throws StartError */
export const verifyMayRead = ({ kafka, log }: Asked, { topic, groupId }: Reading): Promise<void> =>
  asking({ kafka, log }, groupId, async (broker) => {
    const type = await refusalOf(broker.offsetCommit({ groupId, groupGenerationId: -1, memberId: '', topics: [{ topic, partitions: [{ partition: NO_PARTITION, offset: '0' }] }] }));
    if (type === 'GROUP_AUTHORIZATION_FAILED') throw new StartError(`Kafka does not let this service READ as the consumer group ${groupId}`);
    if (type === 'TOPIC_AUTHORIZATION_FAILED') throw new StartError(`Kafka does not let this service READ the topic ${topic}`);
  });

/** Asks one broker, whichever, by single requests. kafkajs hands its connections out to partition assigners alone. */
async function asking({ kafka, log }: Asked, groupId: string, ask: (broker: Broker) => Promise<void>): Promise<void> {
  const handed: Cluster[] = [];
  kafka.consumer({ groupId, partitionAssigners: [({ cluster }) => {
    handed.push(cluster);
    return undefined as never;
  }] });
  const [cluster] = handed as [Cluster];
  const asked = (async () => {
    await cluster.connect();
    await cluster.refreshMetadata();
    await ask(await cluster.findBroker({ nodeId: String(cluster.getNodeIds()[0]) }));
  })();
  try {
    await inTime(asked, WITHIN_MS);
  } catch (error) {
    asked.catch(() => undefined);
    if (error instanceof StartError) throw error;
    // what does not answer now says nothing of rights, and is waited for where it is used
    log.warn({ error }, 'Kafka was not heard about the rights of this service: one that is missing shows when it is needed');
  } finally {
    void cluster.disconnect().catch(() => undefined);
  }
}

const refusalOf = (request: Promise<unknown>): Promise<string | undefined> =>
  request.then(() => undefined, (error: unknown) => rootOf(error).type);
