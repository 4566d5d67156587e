import { HANGING } from '../../services/agents/test/runtimes/expression/hanging.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';
import { COUNT, printTried, withstand } from './attack.ts';

/** Expressions that try to change the language for whoever comes next, or to read what another one left. */
const LANGUAGE = [
  '(function($f){ {} ~> |$sum|{"implementation":$f},["signature"]| })(function($x){42})',
  '($f := function($x){$x}; {} ~> |$f|{},["_jsonata_lambda"]|; $f.environment.base.options)',
  '{} ~> |$spread($sqrt).signature|{"definition":"<x:x>"}|',
  '($clone := function($x){$x}; $ ~> |$|{"sum":1}|)',
  '{"a":{}} ~> |a|{"__proto__":{"b":1},"constructor":{"prototype":1},"toString":2}|',
  '($sum := function($x){42}; $sqrt := $sum; $sum([1]))',
  '$map([$sum, $sqrt], function($f) { $f ~> |$|{"arity":9}| })',
  '(function($then) { {"then": $then} })(function($yes, $no) { $no({"code": "D1012"}) })',
  '$each(?, function($v, $k) { $v })([1..3])',
  '$error($string($lookup($sum, "implementation")))',
];
const ENDLESS = '($f := function($n) { $f($n + 1) }; $f(0))';
const GREEDY = '[1..90000].[1..90000]';

let stack: Stack;
let neighbour: Tenant;
const hostile: Tenant[] = [];
beforeAll(async () => {
  stack = await startStack();
  const limits = { wallMs: 500, maxSteps: 1e9 };
  neighbour = await stack.tenant({
    credits: 1e6,
    agents: [expressionAgent('probe', '{ "sum": $sum([1, 2, 4]), "root": $sqrt(16), "mine": $ }')],
  });
  for (let i = 0; i < 8; i++)
    hostile.push(
      await stack.tenant({
        credits: 1e6,
        agents: [
          ...(i > 0 ? [] : LANGUAGE.map((source, n) => expressionAgent(`language-${n}`, source))),
          expressionAgent('hanging', HANGING, { limits }),
          expressionAgent('endless', ENDLESS, { limits }),
          expressionAgent('greedy', GREEDY, { limits: { wallMs: 50_000, maxSteps: 1e9, memoryMb: 16 } }),
        ],
      }),
    );
});
afterAll(async () => {
  printTried();
  await stack.stop();
});

const run = (tenant: Tenant, agentName: string, args: unknown = {}) =>
  tenant.requestOnce('POST', '/api/agent/run', { agentName, args });

async function neighbourRuns(n: number): Promise<void> {
  const reply = await neighbour.request('POST', '/api/agent/run', { agentName: 'probe', args: { n } });
  expect([reply.status, reply.body.output]).toEqual([200, { sum: 7, root: 4, mine: { n } }]);
}

describe('the runs of a neighbour are answered, and are right, while other organizations', () => {
  it('run expressions that change the language', () =>
    withstand({
      name: 'expressions against the language',
      send: (n) => run(hostile[0]!, `language-${n % LANGUAGE.length}`, { secret: n }),
      atOnce: 4,
      atLeast: LANGUAGE.length * COUNT,
      allowed: [500],
      neighbour: neighbourRuns,
      neighbours: 20 * COUNT,
    }));

  it.each([
    ['spend their time inside of a built-in function', 'hanging', 504],
    ['never end', 'endless', 504],
    ['take all memory', 'greedy', 500],
  ])('%s', async (_what, agent, end) => {
    const statuses = await withstand({
      name: `runs that ${_what}, of eight organizations`,
      send: (n) => run(hostile[n % 8]!, agent),
      atOnce: 8,
      allowed: [end, 503, 504],
      neighbour: neighbourRuns,
      neighbours: 3 * COUNT,
    });
    expect(statuses[end]).toBeGreaterThan(0);
  });
});
