import { run } from 'platform/service/run.ts';
import { program } from './service.ts';

await run(program, process.env, process.argv);
