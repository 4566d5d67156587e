import { Worker } from 'node:worker_threads';
import { ServiceError } from 'platform/core/errors.ts';
import { fairQueue } from 'platform/core/fair-queue.ts';
import type { Answer, Text } from './reader-thread.ts';
import { strictJson } from 'platform/json/strict-json.ts';

/** A smaller text takes a millisecond or two. */
const MIN_BYTES_OF_THREAD = 32_768;

export interface JsonReader {
  /**
   * What strictJson makes of the bytes of one organization. A second thread reads large texts, one at a time, and takes
   * turns between organizations: the event loop stays free for other requests.
   * @param bytes of a large text are given away, and cannot be read afterwards
   * @param schemas as for strictJson
   */
  read(organizationId: string, bytes: Buffer<ArrayBuffer>, schemas: readonly string[]): Promise<Buffer>;
  close(): Promise<unknown>;
}

interface Job extends Text {
  resolve(json: Buffer): void;
  reject(error: Error): void;
}

export function openJsonReader(): JsonReader {
  const waiting = fairQueue<Job>();
  let thread: Worker | undefined;
  let current: Job | undefined;

  function runNext(): void {
    if (current) return;
    current = waiting.shift()?.item;
    if (!current) return;
    thread ??= startThread();
    thread.ref();
    const { bytes, schemas } = current;
    thread.postMessage({ bytes, schemas } satisfies Text, [bytes.buffer]);
  }

  function endCurrent(end: (job: Job) => void): void {
    const job = current!;
    current = undefined;
    end(job);
    runNext();
  }

  function startThread(): Worker {
    const started = new Worker(new URL('./reader-thread.ts', import.meta.url));
    started.on('message', (answer: Answer) => {
      started.unref(); // an idle thread does not keep the process
      endCurrent((job) => settle(job, answer));
    });
    started.once('error', (error) => {
      thread = undefined;
      endCurrent((job) => job.reject(error as Error));
    });
    return started;
  }

  return {
    async read(organizationId, bytes, schemas) {
      if (bytes.length < MIN_BYTES_OF_THREAD) return strictJson(bytes, schemas);
      const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
      waiting.push(organizationId, { bytes, schemas, resolve, reject });
      runNext();
      return promise;
    },
    close: async () => thread?.terminate(),
  };
}

function settle({ resolve, reject }: Job, answer: Answer): void {
  if ('fault' in answer) reject(new ServiceError(answer.fault.reason, answer.fault.message, answer.fault));
  else resolve(Buffer.from(answer.json.buffer, answer.json.byteOffset, answer.json.length));
}
