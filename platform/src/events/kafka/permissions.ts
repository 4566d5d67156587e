import type { Cluster, Kafka } from 'kafkajs';
import { withTimeout } from '../../core/with-timeout.ts';
import type { Log } from '../../core/log.ts';
import { StartError } from '../../core/start-error.ts';
import { rootOf } from './client.ts';

/**
 * No topic has so many partitions, so Kafka rejects any request for this one; it checks permissions (ACLs) before
 * that.
 */
const NO_PARTITION = 2_147_483_647;
const CHECK_MS = 5_000;

interface Permissions {
  /** Topics to write to; checked by producing no messages to NO_PARTITION. */
  writes: readonly string[];
  /** Topics to read and the consumer groups that read them; checked by committing an offset of NO_PARTITION. */
  reads?: readonly { topic: string; groupId: string }[];
}

/**
 * Checks the permissions of this service with requests to one broker that change nothing.
 * @throws StartError for the first permission that is missing
 */
export async function checkPermissions(kafka: Kafka, log: Log, permissions: Permissions): Promise<void> {
  const cluster = clusterOf(kafka);
  const checked = check(cluster, permissions);
  try {
    await withTimeout(checked, CHECK_MS);
  } catch (error) {
    checked.catch(() => undefined);
    if (error instanceof StartError) throw error;
    // A broker that does not answer proves nothing about permissions; whoever uses it next waits for it.
    log.warn(
      { error },
      'The permissions of this service in Kafka could not be checked: a missing one will show when it is needed',
    );
  } finally {
    void cluster.disconnect().catch(() => undefined);
  }
}

async function check(cluster: Cluster, { writes, reads = [] }: Permissions): Promise<void> {
  await cluster.connect();
  await cluster.refreshMetadata();
  const broker = await cluster.findBroker({ nodeId: String(cluster.getNodeIds()[0]) });
  for (const { topic, groupId } of reads) {
    const type = await errorTypeOf(
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
    const type = await errorTypeOf(
      broker.produce({
        topicData: [{ topic, partitions: [{ partition: NO_PARTITION, firstSequence: 0, messages: [] }] }],
      }),
    );
    if (type === 'TOPIC_AUTHORIZATION_FAILED')
      throw new StartError(`Kafka does not let this service WRITE to the topic ${topic}`);
  }
}

/** The connections of a client. kafkajs passes them to partition assigners only. */
function clusterOf(kafka: Kafka): Cluster {
  const found: Cluster[] = [];
  kafka.consumer({
    groupId: 'permissions',
    partitionAssigners: [
      ({ cluster }) => {
        found.push(cluster);
        return undefined as never;
      },
    ],
  });
  return found[0]!;
}

/**
 * The type of the error that the broker answers with; undefined for success.
 * @throws an error that is no such answer
 */
const errorTypeOf = (request: Promise<unknown>): Promise<string | undefined> =>
  request.then(
    () => undefined,
    (error: unknown) => {
      const { type } = rootOf(error);
      if (type === undefined) throw error;
      return type;
    },
  );
