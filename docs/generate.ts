import { writeFileSync } from 'node:fs';
import { makeProgram } from '../admin/src/program.ts';
import { adminReference } from '../admin/src/reference.ts';
import { definitionReference } from '../services/agents/src/definitions/reference.ts';
import { NO_RUNNERS, testRuntimes } from '../services/agents/test/runtimes/test-runtimes.ts';
import { metricsPage } from './metrics-page.ts';

/** `npm run docs`: writes the pages that are made from the sources; tests compare them. */
writeFileSync(new URL('agent-definition.md', import.meta.url), definitionReference(testRuntimes(NO_RUNNERS).byType));
writeFileSync(new URL('admin.md', import.meta.url), adminReference(makeProgram({}, {}).program));
writeFileSync(new URL('metrics.md', import.meta.url), metricsPage());
