import { restMethods } from '../contract/rest-methods.ts';
import { openApiDocument } from './document.ts';

// What clients are generated from, without a running gateway.
process.stdout.write(JSON.stringify(openApiDocument(restMethods(), ''), null, 2));
