import type { Metric } from 'platform/telemetry/metrics.ts';
import { alerts, DECLARED } from '../test/support/declared-metrics.ts';

/** docs/metrics.md, from what the programs declare and from deploy/telemetry/alerts.yaml. */
export function metricsPage(): string {
  const programs = Object.keys(DECLARED);
  const metrics = [...new Set(Object.values(DECLARED).flat())].sort((a, b) => (a.name < b.name ? -1 : 1));
  const rows = metrics.map((metric) => {
    const having = programs.filter((program) => DECLARED[program]!.includes(metric));
    return rowOf(metric, having.length === programs.length ? 'all' : having.join(', '));
  });
  return `${HEAD}
| Metric | Type | Labels | Of | Meaning |
|---|---|---|---|---|
${rows.join('\n')}

## Alerts

\`deploy/telemetry/alerts.yaml\` has the rules; each names its runbook, a heading \`Alert <name>\` of
[operations.md](operations.md).

| Alert | Severity | Meaning | What to do |
|---|---|---|---|
${alerts()
  .map(({ alert, labels, annotations: { description, action } }) =>
    [`| \`${alert}\``, labels.severity, description, `${action} |`].join(' | '),
  )
  .join('\n')}
`;
}

const rowOf = ({ name, type, labels, help }: Metric, having: string): string =>
  `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${having} | ${help} |`;

const HEAD = `# Metrics

This page is made by \`npm run docs\` from what the programs declare. Why it is so:
[ADR 48](adr/0048-metrics.md).

A program tells its metrics to Prometheus at \`<NAME>_METRICS_LISTEN\` (\`GATEWAY_METRICS_LISTEN=127.0.0.1:9464\`): \`GET
/metrics\`, without TLS, and nothing else. Without that setting it listens nowhere and counts nothing. \`deploy/k8s\` (the
component \`telemetry\`) and \`deploy/compose.yaml\` set it, to port 9464 of each container. To try it, with a port for each:

\`\`\`sh
GATEWAY_METRICS_LISTEN=127.0.0.1:9464 AUTH_METRICS_LISTEN=127.0.0.1:9465 npm start
curl http://127.0.0.1:9464/metrics
\`\`\`

\`deploy/telemetry\` has the alert rules, their test for promtool, and a dashboard for Grafana.

Every series also has the label \`program\`. No label has the name or id of an organization, agent, user or object: a route
is the template of a path, a code is one of the error table. So the number of series is bounded by the number of routes,
methods and codes, whatever tenants do. What one organization uses is in the ledger, the audit trail and the executions.

A gauge is read when Prometheus asks. What cannot be read within three seconds is missing in that scrape.
`;
