import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeLog } from 'platform/core/log.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { openMetrics, type Metric } from 'platform/telemetry/metrics.ts';
import { ALERTS_FILE, alerts, DECLARED } from '../support/declared-metrics.ts';
import { promtool } from '../support/promtool.ts';

const TESTS_FILE = ALERTS_FILE.replace('alerts.yaml', 'alerts.test.yaml');

describe('the alert rules', () => {
  it('are rules of Prometheus', () => {
    expect(promtool(['check', 'rules', ALERTS_FILE])).toMatchObject({
      succeeded: true,
      said: expect.stringContaining(`${alerts().length} rules found`),
    });
  });

  it('fire where they must, and nowhere else', () => {
    expect(promtool(['test', 'rules', TESTS_FILE])).toMatchObject({ succeeded: true });
  });

  it.each(alerts().map(({ alert }) => alert))('would be found wrong if %s asked the contrary', (name) => {
    const folder = temporaryFolder();
    closedInTheEnd(() => folder.remove());
    const { expr } = alerts().find(({ alert }) => alert === name)!;
    const contrary = `absent((${expr.trim().replaceAll(/\s+/g, ' ')}))`;
    const rules = {
      groups: [
        { name: 'mutant', rules: alerts().map((rule) => (rule.alert === name ? { ...rule, expr: contrary } : rule)) },
      ],
    };
    writeFileSync(join(folder.path, 'alerts.yaml'), JSON.stringify(rules));
    writeFileSync(join(folder.path, 'alerts.test.yaml'), readFileSync(TESTS_FILE));
    expect(promtool(['check', 'rules', join(folder.path, 'alerts.yaml')])).toMatchObject({ succeeded: true });
    expect(promtool(['test', 'rules', join(folder.path, 'alerts.test.yaml')])).toMatchObject({ succeeded: false });
  });
});

describe('the metrics', () => {
  it('have the format of Prometheus and names as it asks for them', async () => {
    const declared = [...new Set(Object.values(DECLARED).flat())];
    const metrics = await openMetrics('auth', '127.0.0.1:0', declared.filter(isOfProgram), makeLog('auth', 'silent'));
    closedInTheEnd(() => metrics.close());
    for (const metric of declared.filter(isOfProgram)) {
      const labels = Object.fromEntries(metric.labels.map((label) => [label, 'a "quoted" \\ value\n']));
      if (metric.type === 'histogram') metrics.observe(metric, labels, 1);
      else metrics.add(metric, labels);
    }
    const text = await (await fetch(`http://${metrics.address}/metrics`)).text();
    expect(promtool(['check', 'metrics'], text)).toEqual({ succeeded: true, said: '' });
    expect(promtool(['check', 'metrics'], `${text}broken{`)).toMatchObject({ succeeded: false });
  });
});

/** Those of the process are there by themselves. */
const isOfProgram = ({ name }: Metric): boolean =>
  name.startsWith('agentmemory_') && !name.startsWith('agentmemory_event_loop');
