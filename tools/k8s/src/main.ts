import { build } from './build.ts';
import { lint } from './lint.ts';
import { verify } from './verify.ts';

const USAGE = `npm run k8s -- lint: holds the manifests of deploy/k8s against the API server's own code, without a cluster
npm run k8s -- verify: applies them to a control plane that runs on this machine for it
`;

const [command, ...rest] = process.argv.slice(2);
if (command === 'lint' && rest.length === 0) process.exitCode = lint(build('lint', process.env)) ? 0 : 1;
else if (command === 'verify' && rest.length === 0)
  process.exitCode = (await verify(build('cluster', process.env))) ? 0 : 1;
else {
  process.stderr.write(USAGE);
  process.exitCode = 2;
}
