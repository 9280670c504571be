// Runs the linter and the tests of all packages. Those of tooling/e2e take longest and mostly wait for the programs that
// they start, so they begin at once, beside all others, which compute.
//
// Exit status 0 only if everything passed.

import { spawn } from 'node:child_process';
import { once } from 'node:events';

const WAITING = '@nodepool/e2e';

/** Returns true if all tasks passed. An interrupt from the terminal reaches turbo without this process. */
async function turbo(...args) {
  const child = spawn('turbo', ['run', ...args, '--output-logs=new-only', '--continue'], { stdio: 'inherit' });
  const [status] = await once(child, 'exit');
  return status === 0;
}

process.on('SIGINT', () => undefined);
const passed = await Promise.all([
  turbo('test', `--filter=${WAITING}`, '--concurrency=1'),
  turbo('lint', 'format:check', 'test', `--filter=!${WAITING}`, '--concurrency=2'),
]);
process.exitCode = passed.every(Boolean) ? 0 : 1;
