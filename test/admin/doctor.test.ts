import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { commandLine, json, printed, type CommandLine } from './admin-command.ts';

interface Line {
  process: string;
  name: string;
  fine: boolean;
  sentence: string;
}

describe('admin doctor', () => {
  let stack: RunningStack;
  let admin: CommandLine;
  beforeAll(async () => {
    stack = await sharedStack();
    admin = commandLine(stack.env);
  });

  it('has a line for every process, engine, key and clock, and for what waits', async () => {
    const lines: Line[] = await json(admin('--json doctor', gatewayOf(stack)));
    expect(lines.filter(({ fine }) => !fine)).toEqual([]);
    const ofAll = ['clock', 'certificate', 'document store', 'event bus', 'pending events'];
    const checksOf = (name: string) =>
      lines.filter(({ process }) => process.split(' ')[0] === name).map((line) => line.name);
    expect(checksOf('auth')).toEqual(expect.arrayContaining([...ofAll, 'signing key', 'master key']));
    expect(checksOf('agents')).toEqual(expect.arrayContaining([...ofAll, 'master key']));
    // whom "keys retire-master" asks
    expect([...checksOf('memory'), ...checksOf('credits')]).not.toContain('master key');
    expect(checksOf('memory')).toEqual(expect.arrayContaining(ofAll));
    expect(checksOf('credits')).toEqual(expect.arrayContaining([...ofAll, 'reservations']));
    expect(checksOf('gateway')).toContain('answer');
    expect(await printed(admin('doctor'))).toMatch(
      /^Process +Check +State +Finding\n[^]*^credits.* +reservations +ok /m,
    );
  });

  it('shows a replica and a gateway that are stopped as lines, beside the others, and ends with 1', async () => {
    const nobody = '127.0.0.1:1';
    const { code, stdout, stderr } = await admin('--json doctor', {
      MEMORY_ADDRESS: `${stack.env.MEMORY_ADDRESS ?? stack.env.MEMORY_LISTEN},${nobody}`,
      GATEWAY_ADDRESS: nobody,
    });
    const lines = JSON.parse(stdout) as Line[];
    const wrong = lines.filter(({ fine }) => !fine);
    expect(wrong).toEqual([
      expect.objectContaining({ sentence: `memory does not answer at ${nobody}: is it running?` }),
      { process: 'gateway', name: 'answer', fine: false, sentence: `does not answer at http://${nobody}` },
    ]);
    expect(lines).toContainEqual(expect.objectContaining({ process: 'memory 1', name: 'document store', fine: true }));
    expect([code, stderr]).toEqual([1, `2 of ${lines.length} checks found something wrong.\n`]);
  });
});

/** Every gateway of the stack. */
const gatewayOf = ({ baseUrls }: RunningStack) => ({
  GATEWAY_ADDRESS: baseUrls.map((url) => new URL(url).host).join(','),
});
