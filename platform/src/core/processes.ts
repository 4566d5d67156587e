/** The processes of the product and their default addresses. */
export const PROCESSES = {
  auth: '127.0.0.1:50051',
  agents: '127.0.0.1:50052',
  memory: '127.0.0.1:50053',
  credits: '127.0.0.1:50054',
  gateway: '127.0.0.1:8080',
} as const;
export type ProcessName = keyof typeof PROCESSES;

/** The name of a setting of one process: "memory", "LISTEN" -> "MEMORY_LISTEN". */
export const settingOf = (name: string, setting: 'LISTEN' | 'HEALTH_LISTEN' | 'METRICS_LISTEN' | 'ADDRESS'): string =>
  `${name.toUpperCase()}_${setting}`;
