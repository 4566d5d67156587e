// JavaScript, because for this file alone Node would load what strips types, which takes 12 MB (ADR 24).
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

const NODE_COMPILE_CACHE = join(import.meta.dirname, '../../node_modules/.cache/compile');
/** glibc would give threads heaps of their own, of which most stays unused (ADR 24). */
const MALLOC_ARENA_MAX = '1';

// Enabled before the other modules are loaded: it halves their load time. `npm ci` fills the cache by running --help.
enableCompileCache(NODE_COMPILE_CACHE);
const { launch } = await import('./launch.ts');
launch({ NODE_COMPILE_CACHE, MALLOC_ARENA_MAX, ...process.env }, process.argv.slice(2));
