import { build, type GoProgram } from './build.ts';
import { lint } from './lint.ts';
import { verify } from './verify.ts';

const USAGE = `npm run k8s -- lint: holds the manifests of deploy/k8s against the API server's own code, without a cluster
npm run k8s -- verify: applies them to a control plane that runs on this machine for it
`;

/** The exit code when Go or its modules cannot be had, so that nothing was checked. */
const NOT_CHECKED = 3;

function built(program: GoProgram): string {
  try {
    return build(program, process.env);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    process.exit(NOT_CHECKED);
  }
}

const [command, ...rest] = process.argv.slice(2);
if (command === 'lint' && rest.length === 0) process.exitCode = lint(built('lint')) ? 0 : 1;
else if (command === 'verify' && rest.length === 0) process.exitCode = (await verify(built('cluster'))) ? 0 : 1;
else {
  process.stderr.write(USAGE);
  process.exitCode = 2;
}
