import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SERVICE_METRICS } from 'platform/service/metrics.ts';
import { PROCESS_METRICS } from 'platform/telemetry/metrics-process.ts';
import type { Metric } from 'platform/telemetry/metrics.ts';
import { HTTP_METRICS } from '../../gateway/src/http/metrics.ts';
import { program as agents } from '../../services/agents/src/service.ts';
import { program as auth } from '../../services/auth/src/service.ts';
import { program as credits } from '../../services/credits/src/service.ts';
import { program as memory } from '../../services/memory/src/service.ts';

/** What each program registers. */
export const DECLARED: Readonly<Record<string, readonly Metric[]>> = {
  gateway: [...PROCESS_METRICS, ...HTTP_METRICS],
  ...Object.fromEntries(
    [auth, agents, memory, credits].map(({ name, metrics = [] }) => [
      name,
      [...PROCESS_METRICS, ...SERVICE_METRICS, ...metrics],
    ]),
  ),
};

export interface Alert {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; action: string; runbook_url: string };
}

const FOLDER = join(import.meta.dirname, '../../deploy/telemetry');
export const ALERTS_FILE = join(FOLDER, 'alerts.yaml');
export const alerts = (): Alert[] =>
  (parse(readFileSync(ALERTS_FILE, 'utf8')) as { groups: { rules: Alert[] }[] }).groups.flatMap(({ rules }) => rules);

interface Panel {
  title: string;
  targets?: { expr: string }[];
}
export const panels = (): Panel[] =>
  (JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as { panels: Panel[] }).panels;
