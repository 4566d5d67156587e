import { writeFileSync } from 'node:fs';
import { definitionReference } from '../services/agents/src/definitions/reference.ts';
import { NO_RUNNERS, testRuntimes } from '../services/agents/test/runtimes/test-runtimes.ts';

/** `npm run docs`: writes the pages that are made from the sources; tests compare them. */
writeFileSync(new URL('agent-definition.md', import.meta.url), definitionReference(testRuntimes(NO_RUNNERS).byType));
