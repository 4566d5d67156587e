import { containersOf, type Document } from '../../tools/k8s/src/render.ts';
import { DECLARED } from '../support/declared-metrics.ts';
import { PROGRAMS } from './programs.ts';
import { faultsOf, overlay, productionWith, SUPPLIED } from './rendered.ts';

describe('the component runs-autoscaler', () => {
  it('scales agents on a metric that they tell, beside their processor', () => {
    const scaler = agentsScaler(productionWith('runs-autoscaler'));
    const [processor, runs] = scaler.spec.metrics as Document[];
    expect(processor).toEqual(agentsScaler(overlay('production')).spec.metrics[0]);
    expect(agentsScaler(overlay('production')).spec.metrics).toHaveLength(1);
    const { name } = runs!.pods.metric as { name: string };
    expect(DECLARED.agents!.filter((metric) => metric.name === name && metric.type === 'gauge')).toHaveLength(1);
  });
  const agentsScaler = (documents: readonly Document[]): Document =>
    documents.find(({ kind, metadata }) => kind === 'HorizontalPodAutoscaler' && metadata.name === 'agents')!;
});

describe('the component traces', () => {
  const traced = productionWith('traces');

  it('gives every program settings that it knows and takes, the same ones', () => {
    expect(faultsOf(traced, SUPPLIED)).toEqual([]);
    const settings = PROGRAMS.map(({ name }) => {
      const container = traced.filter(({ kind }) => kind === 'Deployment').flatMap(containersOf);
      const { env } = container.find((each) => each.name === name) as { env: Document[] };
      return env.filter((each) => (each.name as string).startsWith('OTEL_'));
    });
    expect(settings[0]!.map(({ name }) => name as string)).toContain('OTEL_EXPORTER_OTLP_ENDPOINT');
    for (const each of settings) expect(each).toEqual(settings[0]);
  });

  it('lets every program reach the collector, at the port to which it sends', () => {
    const policy = traced.find(({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'traces')!;
    const [{ values }] = policy.spec.podSelector.matchExpressions as [{ values: string[] }];
    expect(values.toSorted()).toEqual(PROGRAMS.map(({ name }) => name).toSorted());
    const [{ env }] = traced.flatMap(containersOf) as [{ env: Document[] }];
    const { value } = env.find(({ name }) => name === 'OTEL_EXPORTER_OTLP_ENDPOINT')!;
    const { hostname, port } = new URL(value as string);
    const [rule] = policy.spec.egress as [{ to: [Document]; ports: Document[] }];
    expect(rule.ports).toEqual([{ protocol: 'TCP', port: Number(port) }]);
    const [peer] = rule.to;
    expect(hostname).toBe(
      `${peer.podSelector.matchLabels['app.kubernetes.io/name']}.` +
        `${peer.namespaceSelector.matchLabels['kubernetes.io/metadata.name']}`,
    );
  });
});
