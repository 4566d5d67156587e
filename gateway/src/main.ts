import { runProcess } from 'platform/service/process.ts';
import { config } from './config.ts';
import { startGateway } from './gateway.ts';

await runProcess({ name: 'gateway', declaration: config, start: startGateway }, process.env, process.argv.slice(2));
