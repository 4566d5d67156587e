import { readFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Command } from 'commander';
import { DiagnosisServiceService, type Finding } from 'proto/platform/v1/diagnosis.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';
import { identityFilesOf } from 'platform/rpc/keys.ts';
import { certificateFinding, inSeconds, MAX_SKEW_MS } from 'platform/service/diagnose.ts';
import type { Context } from './context.ts';

const SERVICES: readonly ProcessName[] = ['auth', 'agents', 'memory', 'credits'];
const GATEWAY_MS = 10_000;

interface Line extends Finding {
  /** The process, with its number where it has replicas: "auth 2". */
  process: string;
}

/** Something that does not answer is a line, as anything else that is wrong. */
async function findingsOf(process: string, look: () => Promise<Finding[]>): Promise<Line[]> {
  try {
    return (await look()).map((finding) => ({ process, ...finding }));
  } catch (error) {
    if (!(error instanceof ServiceError) && !(error instanceof StartError)) throw error;
    return [{ process, name: 'answer', fine: false, sentence: error.message.replace(/\n[^]*/, '') }];
  }
}

const numbered = (name: string, index: number, count: number): string => (count === 1 ? name : `${name} ${index + 1}`);

/** Asks every replica of a service. */
async function service(context: Context, name: ProcessName): Promise<Line[]> {
  let replicas;
  try {
    replicas = await context.clients(DiagnosisServiceService, name);
  } catch (error) {
    return findingsOf(name, () => Promise.reject(error));
  }
  const lines = replicas.map((replica, index) =>
    findingsOf(numbered(name, index, replicas.length), async () => {
      const [askedAt, asked] = [Date.now(), performance.now()];
      const { timeMs, findings } = await replica.diagnose({}, context.asOperator());
      const tookMs = performance.now() - asked;
      // the replica reads its clock between the question and the answer
      const aheadMs = timeMs < askedAt ? timeMs - askedAt : Math.max(0, timeMs - askedAt - tookMs);
      const fine = Math.abs(aheadMs) <= MAX_SKEW_MS;
      const clock = fine ? "agrees with this machine's" : `is ${inSeconds(aheadMs)} this machine's`;
      return [{ name: 'clock', fine, sentence: clock }, ...findings];
    }),
  );
  return (await Promise.all(lines)).flat();
}

/** The probe that a load balancer asks. It checks no certificate: clients know the gateway by another name. */
async function gateway(url: string, process: string): Promise<Line[]> {
  const sent = (url.startsWith('https:') ? httpsRequest : httpRequest)(`${url}/readyz`, {
    timeout: GATEWAY_MS,
    rejectUnauthorized: false,
  });
  const status = await new Promise<number | undefined>((resolve) => {
    sent.on('response', (response) => resolve(response.resume().statusCode));
    sent.on('error', () => resolve(undefined));
    sent.on('timeout', () => sent.destroy(new Error('timeout')));
    sent.end();
  });
  const sentence = status === undefined ? `does not answer at ${url}` : `${url}/readyz says ${status}`;
  return [{ process, name: 'answer', fine: status === 200, sentence }];
}

const certificate = (context: Context): Promise<Line[]> =>
  findingsOf(context.operatorName(), async () => {
    const name = context.operatorName();
    try {
      const pem = readFileSync(identityFilesOf(context.keyFolder(), name).certFile, 'utf8');
      return [{ name: 'certificate', ...certificateFinding(pem) }];
    } catch (cause) {
      throw new StartError(`The certificate of ${name} cannot be read`, { cause });
    }
  });

export function doctorCommand(context: Context): Command {
  return new Command('doctor')
    .description(
      'check every process, engine, key and clock, and what waits to be done, one line each; exit code 1 if something ' +
        'is wrong',
    )
    .action(async () => {
      const urls = context.gatewayUrls();
      const lines = (
        await Promise.all([
          certificate(context),
          ...SERVICES.map((name) => service(context, name)),
          ...urls.map((url, index) => gateway(url, numbered('gateway', index, urls.length))),
        ])
      ).flat();
      context.print(lines, [
        { title: 'Process', value: (line) => line.process },
        { title: 'Check', value: (line) => line.name },
        { title: 'State', value: (line) => (line.fine ? 'ok' : 'WRONG') },
        { title: 'Finding', value: (line) => line.sentence, narrowed: 'never' },
      ]);
      const wrong = lines.filter(({ fine }) => !fine).length;
      if (wrong === 0) return;
      context.note(`${wrong} of ${lines.length} checks found something wrong.`);
      process.exitCode = 1;
    });
}
