/**
 * Builds all container images, looks into each, and runs them as docs/deploying.md shows it. The last line is the sum,
 * as `./test` prints it. Prints SKIPPED, with status 0, if containers cannot run here.
 */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { interruption, Narrator, Program, reportTotals, runCommandLine, type TestTotals } from '@nodepool/harness';
import { followEvening, type Images } from './evening.js';
import { checkImage, TARGETS } from './images.js';
import { Podman } from './podman.js';
import { checkServices } from './services.js';

const ROOT = join(__dirname, '..', '..', '..');
const BUILD_TIMEOUT_MS = 10_800_000;
const ZOOKEEPER_IMAGE = 'localhost/nodepool-zookeeper';

const HELP = `Usage: pnpm test:containers [--no-build]

Builds all container images with buildah, compares each with its list of packages, and follows "A first evening" of
docs/deploying.md with podman-compose. Then it starts the other services until their health checks succeed. Needs root.

  --no-build  use the images that "pnpm container --all" has built
  --help      this text

Exit status: 0 no check failed, or containers cannot run here (SKIPPED); 1 a check failed; 2 wrong usage;
130 the run was interrupted.
`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { 'no-build': { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stderr.write(`${line}\n`));
  const say = (line: string): void => narrator.say(line);
  const scratch = await mkdtemp(join(tmpdir(), 'nodepool-containers-'));
  const totals: TestTotals[] = [];
  const report = (problems: readonly string[]): void => {
    for (const problem of problems) process.stdout.write(`FAILED: ${problem}\n`);
    const hasPassed = problems.length === 0;
    totals.push({ passed: hasPassed ? 1 : 0, failed: hasPassed ? 0 : 1, skipped: 0 });
  };
  try {
    const podman = await Podman.find(scratch, interrupted);
    if (typeof podman === 'string') {
      process.stdout.write(`SKIPPED: ${podman}\n`);
      reportTotals([{ passed: 0, failed: 0, skipped: 1 }]);
      return;
    }
    if (!values['no-build']) await build(say, interrupted);
    for (const target of TARGETS) {
      const { problems, megabytes } = await checkImage(podman, target);
      say(`the image ${target} has ${megabytes} MB`);
      report(problems);
    }
    const images = await replacements(podman, say);
    const look = async (network: string, site: string): Promise<string[]> => {
      const configuration = await readFile(join(site, 'nodepool.yaml'), 'utf8');
      return await checkServices(podman, { scratch, network, configuration }, say);
    };
    report(await followEvening(podman, { root: ROOT, scratch, images }, say, look));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  reportTotals(totals);
}

async function build(say: (line: string) => void, interrupted: AbortSignal): Promise<void> {
  const logFile = join(ROOT, '.tools', 'logs', 'container.log');
  say(`building all images; log: ${logFile}`);
  const script = join(ROOT, 'tooling', 'setup', 'container.sh');
  const builder = await Program.start({
    name: 'the build of the images',
    command: 'bash',
    args: [script, '--all'],
    logFile,
  });
  const { code } = await builder.ends(BUILD_TIMEOUT_MS, interrupted);
  if (code !== 0) throw new Error(`the build of the images failed: ${builder.logTail()}`);
}

/** Resolves with the official images; with those that this machine builds if it cannot reach their registry. */
async function replacements(podman: Podman, say: (line: string) => void): Promise<Images> {
  const nameIn = async (file: string, pattern: RegExp): Promise<string> =>
    pattern.exec(await readFile(join(ROOT, file), 'utf8'))?.[1] ?? '';
  const zooKeeper = await nameIn('deploy/compose.yaml', /image: (\S+zookeeper:\S+)$/m);
  const official = await nameIn('Dockerfile', /^ARG NODE_IMAGE=(\S+)$/m);
  const exists = async (name: string): Promise<boolean> =>
    await podman.run(['image', 'exists', name]).then(
      () => true,
      () => false,
    );
  const node = (await exists(official)) ? official : `localhost/nodepool-node:${process.version}`;
  const isPulled = await podman.run(['pull', '--quiet', zooKeeper]).then(
    () => true,
    () => false,
  );
  if (isPulled) return { zooKeeper, node };
  say(`no access to ${zooKeeper}: Debian's ZooKeeper takes its place`);
  const folder = join(ROOT, 'tooling', 'containers', 'zookeeper');
  const args = ['build', '--format=docker', '--layers', `--build-arg=NODE_IMAGE=${node}`, `--tag=${ZOOKEEPER_IMAGE}`];
  await podman.run([...args, folder], { program: 'buildah', timeoutMs: BUILD_TIMEOUT_MS });
  return { zooKeeper: ZOOKEEPER_IMAGE, node };
}

runCommandLine(HELP, main);
