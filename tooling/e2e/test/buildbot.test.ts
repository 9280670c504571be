/**
 * The Buildbot example with nodes of Nodepool. `pnpm scenario:buildbot` runs a real master with Debian's packages
 * `buildbot` and `buildbot-worker`.
 */

import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from '@jest/globals';
import { freePorts } from '@nodepool/dev-zookeeper';
import { configFileOf, Program, programPath } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { Site, type LauncherSetup } from './site.js';

const EXAMPLE = join(__dirname, '..', '..', '..', 'examples', 'buildbot');
const PYTHON = '/usr/bin/python3';
const DEADLINE_MS = 1_200_000;
const BUILDS = 100;
const WORKERS = 8;
/** Longer than the sessions of launchers and requestors, so that all nodes in use are lost. */
const OUTAGE_MS = 12_000;

const runsMaster = process.env['NODEPOOL_SCENARIO'] === 'buildbot';

let folder: string;
let site: Site | undefined;

afterEach(async () => {
  await site?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it('the example is valid Python', async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-buildbot-'));
  for (const file of ['nodepool_worker.py', 'master.cfg']) {
    const compile = `import py_compile; py_compile.compile(${JSON.stringify(join(EXAMPLE, file))}, cfile=${JSON.stringify(join(folder, 'out.pyc'))}, doraise=True)`;
    await promisify(execFile)(PYTHON, ['-c', compile]);
  }
  // The scenario runs this configuration of the example with a separate builder.
  expect(readFileSync(join(EXAMPLE, 'master.cfg'), 'utf8')).toContain('from nodepool_worker import NodepoolWorker');
});

/** A master with the worker of the example, and a scheduler that requests all builds when the master starts. */
function masterConfig(nodepool: readonly string[], port: number, identity: string, endedFile: string): string {
  return `
import os, sys
from buildbot.plugins import steps, util
from buildbot.process.properties import Properties
from buildbot.schedulers.base import BaseScheduler
from twisted.internet import defer
sys.path.insert(0, os.path.abspath(basedir))
from nodepool_worker import NodepoolWorker

class AllAtOnce(BaseScheduler):
    @defer.inlineCallbacks
    def activate(self):
        yield super().activate()
        for number in range(${BUILDS}):
            properties = Properties()
            properties.setProperty("number", str(number), "AllAtOnce")
            yield self.addBuildsetForSourceStamps(
                sourcestamps=[{"codebase": "", "project": "", "repository": "", "branch": None, "revision": None}], reason=str(number),
                properties=properties, waited_for=False)

names = ["worker-%d" % number for number in range(${WORKERS})]
c = BuildmasterConfig = {
    "protocols": {"pb": {"port": "tcp:${port}:interface=127.0.0.1"}},
    "db": {"db_url": "sqlite:///state.sqlite"},
    "buildbotNetUsageData": None,
    "workers": [
        NodepoolWorker(name, label="debian", master="127.0.0.1:${port}", nodepool=${JSON.stringify(nodepool)},
                       identity=${JSON.stringify(identity)}, max_builds=1, start_timeout=60)
        for name in names
    ],
    "schedulers": [AllAtOnce(name="all", builderNames=["builds"])],
}
for worker in c["workers"]:
    # The outages of the scenario must not add up to hours.
    worker.quarantine_max_timeout = 20
script = util.Interpolate("sleep 1; echo %(prop:number)s >>${endedFile}")
factory = util.BuildFactory([steps.ShellCommand(command=["sh", "-c", script])])
c["builders"] = [util.BuilderConfig(name="builds", workernames=names, factory=factory, collapseRequests=False)]
`;
}

/** Rows of Buildbot's database: for each build request, whether it is complete and the results of its builds. */
async function buildRequests(database: string): Promise<readonly { complete: number; results: readonly number[] }[]> {
  const script = `
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1], timeout=60).execute(
    "select r.complete, json_group_array(b.results) from buildrequests r left join builds b on b.buildrequestid = r.id group by r.id")
print(json.dumps([{"complete": complete, "results": json.loads(results)} for complete, results in rows]))`;
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', script, database]);
  return JSON.parse(stdout) as { complete: number; results: number[] }[];
}

/** The configuration of the example with the settings of this site. */
function exampleConfig(nodepool: readonly string[], port: number, identity: string): string {
  const settings: readonly (readonly [string, string])[] = [
    ['"tcp:9989"', `"tcp:${port}:interface=127.0.0.1"`],
    ['"buildbot.example.org:9989"', `"127.0.0.1:${port}"`],
    ['["nodepool", "-c", "/etc/nodepool/nodepool.yaml"]', JSON.stringify(nodepool)],
    ['"/etc/buildbot/id_ed25519"', JSON.stringify(identity)],
  ];
  return settings.reduce(
    (text, [example, own]) => {
      expect(text).toContain(example);
      return text.replace(example, own);
    },
    readFileSync(join(EXAMPLE, 'master.cfg'), 'utf8'),
  );
}

if (runsMaster) {
  describe('a Buildbot master', () => {
    it(
      'with the configuration of the example builds a change that `buildbot sendchange` announces',
      async () => {
        folder = mkdtempSync(join(tmpdir(), 'nodepool-buildbot-'));
        const identity = join(folder, 'key');
        await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
        site = await Site.start();
        const endpoint = await site.cloud(['ssh=true', `authorized-keys=${identity}.pub`, 'boot-time=1']);
        const launcher = await site.launcher({
          providers: [{ endpoint, hostKeyChecking: true, username: userInfo().username, maxServers: 1 }],
        });
        const nodepool = [
          process.execPath,
          programPath('nodepool'),
          '-c',
          configFileOf({ folder: site.folder, name: launcher.name }),
        ];
        const [port = 0] = await freePorts(1);
        const master = join(folder, 'master');
        await promisify(execFile)('buildbot', ['create-master', '-q', master]);
        copyFileSync(join(EXAMPLE, 'nodepool_worker.py'), join(master, 'nodepool_worker.py'));
        writeFileSync(join(master, 'master.cfg'), exampleConfig(nodepool, port, identity));
        const buildbot = await Program.start({
          name: 'buildbot',
          command: '/usr/bin/buildbot',
          args: ['start', '--nodaemon', master],
          logFile: join(site.folder, 'buildbot.log'),
        });
        const change = ['sendchange', '--master', `localhost:${port}`, '--auth', 'change:change', '--who', 'me'];
        const database = join(master, 'state.sqlite');
        await buildbot.while('completes a build', DEADLINE_MS, async (signal) => {
          const send = (): Promise<boolean> =>
            promisify(execFile)('buildbot', [...change, '--branch', 'main', 'README']).then(
              () => true,
              () => false,
            );
          // The port of the master opens some time after its start.
          while (!(await send())) await sleep(systemClock, 1000, signal);
          while (!(await buildRequests(database)).some(({ complete }) => complete === 1)) {
            await sleep(systemClock, 1000, signal);
          }
        });
        expect(await buildRequests(database)).toEqual([{ complete: 1, results: [0] }]);
        await buildbot.stop();
        await site.clean(launcher);
      },
      DEADLINE_MS,
    );

    it(
      'finishes every build exactly once while launchers and ZooKeeper are killed',
      async () => {
        folder = mkdtempSync(join(tmpdir(), 'nodepool-buildbot-'));
        const identity = join(folder, 'key');
        await promisify(execFile)('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
        site = await Site.start({ maxSessionTimeout: 10_000 });
        const endpoint = await site.cloud(['ssh=true', `authorized-keys=${identity}.pub`, 'boot-time=1']);
        const setup: LauncherSetup = {
          providers: [{ endpoint, hostKeyChecking: true, username: userInfo().username, maxServers: WORKERS }],
        };
        let launcher = await site.launcher(setup);
        const config = configFileOf({ folder: site.folder, name: launcher.name });
        const [port = 0] = await freePorts(1);
        const ended = join(folder, 'ended');
        writeFileSync(ended, '');
        const master = join(folder, 'master');
        await promisify(execFile)('buildbot', ['create-master', '-q', master]);
        copyFileSync(join(EXAMPLE, 'nodepool_worker.py'), join(master, 'nodepool_worker.py'));
        const nodepool = [process.execPath, programPath('nodepool'), '-c', config];
        writeFileSync(join(master, 'master.cfg'), masterConfig(nodepool, port, identity, ended));
        const buildbot = await Program.start({
          name: 'buildbot',
          command: '/usr/bin/buildbot',
          args: ['start', '--nodaemon', master],
          logFile: join(site.folder, 'buildbot.log'),
        });

        const countOfEnded = (): number => readFileSync(ended, 'utf8').split('\n').length - 1;
        const buildsEnded = (count: number): Promise<void> =>
          buildbot.while(`ends ${count} builds`, DEADLINE_MS, async (signal) => {
            while (countOfEnded() < count) await sleep(systemClock, 250, signal);
          });
        await buildsEnded(15);
        await launcher.kill();
        launcher = await site.launcher(setup);
        await buildsEnded(35);
        await site.restartZooKeeper();
        await buildsEnded(50);
        await site.restartZooKeeper(OUTAGE_MS);
        await buildsEnded(70);
        await launcher.kill();
        launcher = await site.launcher(setup);

        const database = join(master, 'state.sqlite');
        await buildbot.while('completes all build requests', DEADLINE_MS, async (signal) => {
          while ((await buildRequests(database)).filter(({ complete }) => complete === 1).length < BUILDS) {
            await sleep(systemClock, 1000, signal);
          }
        });
        const [success, retry] = [0, 5];
        const requests = await buildRequests(database);
        expect(requests).toHaveLength(BUILDS);
        for (const { results } of requests) {
          expect(results.filter((result) => result === success)).toHaveLength(1);
          expect(results.filter((result) => result !== success && result !== retry)).toEqual([]);
        }
        const numbers = new Set(readFileSync(ended, 'utf8').trim().split('\n'));
        expect(numbers.size).toBe(BUILDS);
        await buildbot.stop();
        await site.clean(launcher);
        await site.noInstances(launcher, endpoint);
        await site.nothingLeft(launcher);
        process.stdout.write(`${requests.flatMap(({ results }) => results).length - BUILDS} builds were retried\n`);
      },
      DEADLINE_MS,
    );
  });
}
