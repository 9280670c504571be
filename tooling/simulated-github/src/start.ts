/** Starts a simulated GitHub. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Timer } from '@nodepool/core';
import {
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  InProcessServer,
  type Answer,
  type Route,
} from '@nodepool/simulated-cloud';
import type { SimulatedGithub, SimulatedGithubOptions } from './api.js';
import { Access, APP_ID, CLIENT_ID, type Permission } from './access.js';
import { startControl } from './control.js';
import { Dispatcher } from './dispatcher.js';
import { EventLog } from './event-log.js';
import { faultOf, type CallFault, type MessageFault } from './faults.js';
import { actionsForm, restForm } from './forms.js';
import { startInProcessRunner } from './in-process-runner.js';
import { Inspector } from './inspector.js';
import { Outbox } from './outbox.js';
import { restRoutes } from './rest-routes.js';
import { BROKER_PATH, runnerRoutes, TOKEN_PATH } from './runner-routes.js';
import { RunnerService } from './runner-service.js';
import { Runners } from './runners.js';
import { ScaleSets } from './scale-sets.js';
import { scaleSetRoutes } from './scale-set-routes.js';
import { Scopes } from './scopes.js';
import { sessionRoutes } from './session-routes.js';
import { Sessions } from './sessions.js';
import { DEFAULT_SETTINGS, DEFAULT_WORLD, type GithubSettings, type GithubState } from './settings.js';
import { writeRunner } from './stand-in.js';
import { Tenants } from './tenants.js';
import type { JobRequest } from './records.js';

/** Starts a simulated GitHub. Rejects if a port is in use. */
export async function startSimulatedGithub(options: SimulatedGithubOptions = {}): Promise<SimulatedGithub> {
  const { world = DEFAULT_WORLD, port = 0, actionsPort = 0, controlPort = 0 } = options;
  const state: GithubState = new CloudState(options, DEFAULT_SETTINGS);
  const faults = new FaultPlan<CallFault>(state.random);
  const messageFaults = new FaultPlan<MessageFault>(state.random);
  const calls = new CallLog();
  const log = new EventLog(state, options.print);
  const scopes = new Scopes(world);
  const access = new Access(state, world);
  const tenants = new Tenants(state, scopes);
  const scaleSets = new ScaleSets(state);
  const runners = new Runners(state);
  const sessions = new Sessions(state, log);
  const dispatcher = new Dispatcher({
    state,
    scopes,
    scaleSets,
    runners,
    outbox: new Outbox(state, messageFaults),
    log,
  });
  const service = new RunnerService({ state, runners, dispatcher, log });
  const parts = { state, tenants, scaleSets, runners, sessions, dispatcher, service, log };
  const shared = { state, faults, calls, describe: <C>(call: C): C => call };
  const restOptions = { ...shared, form: restForm, routes: restRoutes({ state, scopes, access, tenants }) };
  const rest = new CloudServer(restOptions);
  const addresses = (scope: { readonly path: string }) => ({
    gitHubUrl: `${state.url}/${scope.path}`,
    brokerUrl: tenants.url + BROKER_PATH,
    tokenUrl: tenants.url + TOKEN_PATH,
  });
  const actionsRoutes = [
    ...scaleSetRoutes({ ...parts, addresses }),
    ...sessionRoutes({ ...parts, addresses }),
    ...runnerRoutes({ ...parts, url: () => tenants.url }),
  ];
  const actionsOptions = {
    ...{ ...shared, form: actionsForm(state), routes: actionsRoutes.map((route) => changed(route, state)) },
  };
  const actions = new CloudServer(actionsOptions);
  const inProcess = { rest: new InProcessServer(restOptions), actions: new InProcessServer(actionsOptions) };
  const inProcessServers = Object.values(inProcess);
  state.url = `http://127.0.0.1:${await rest.listen(port)}`;
  tenants.url = `http://127.0.0.1:${await actions.listen(actionsPort)}`;
  const folder = await mkdtemp(join(tmpdir(), 'simulated-github-'));
  const appKeyFile = join(folder, 'app.pem');
  const tokenFile = join(folder, 'token');
  await writeFile(appKeyFile, access.appKey(), { mode: 0o600 });
  await writeFile(tokenFile, access.personalToken(), { mode: 0o600 });
  const runner = await writeRunner(join(folder, 'runner'));
  const inspect = new Inspector({ state, scaleSets, runners, dispatcher, log });
  let away: Timer | undefined;
  const controls = {
    configure: (changes: Partial<GithubSettings>) => state.configure(changes),
    queueJob: (request: JobRequest) => dispatcher.queue(request).number,
    startRunner: (encodedJitConfig: string) => startInProcessRunner(parts, encodedJitConfig),
    cancelJob(number: number) {
      const job = dispatcher.get(number);
      if (job !== undefined) dispatcher.cancel(job);
      return job !== undefined;
    },
    removeRunner(name: string) {
      const found = runners.all().find((runner) => runner.name === name);
      if (found !== undefined) dispatcher.deregister(found);
      return found !== undefined;
    },
    loseSession(scaleSet: string) {
      const session = scaleSets.all().find(({ name }) => name === scaleSet)?.session;
      if (session !== undefined) sessions.end(session, 'the service lost it');
      return session !== undefined;
    },
    addRunnerGroup: (scope: string, name: string, repositories?: readonly string[]) =>
      scaleSets.addGroup(scope, name, repositories).id,
    goAway(ms: number) {
      const servers = [rest, actions];
      for (const server of servers) server.refuse();
      for (const server of inProcessServers) server.isRefusing = true;
      away?.cancel();
      const accept = (): void => {
        for (const server of servers) void server.accept();
        for (const server of inProcessServers) server.isRefusing = false;
      };
      away = state.clock.schedule(ms, accept, { background: true });
    },
    personalToken: (permissions?: readonly Permission[]) => access.personalToken(permissions),
    revokeTokens(kind: 'installation' | 'admin' | 'queue') {
      if (kind === 'installation') access.revokeInstallationTokens();
      else if (kind === 'admin') tenants.revoke();
      else sessions.revokeTokens();
    },
    connections: { rest, actions },
    ...{ faults, messageFaults, calls, inspect },
  };
  const control = await startControl(state, controls, controlPort);
  return {
    ...controls,
    url: state.url,
    actionsUrl: tenants.url,
    fetch: (input, init) => {
      const { origin } = new URL(input instanceof Request ? input.url : input);
      return (origin === state.url ? inProcess.rest : inProcess.actions).fetch(input, init);
    },
    controlUrl: control.url,
    ...{ clientId: CLIENT_ID, appId: APP_ID, appKeyFile, tokenFile, runner },
    installations: Object.fromEntries([...access.installations].map(([id, name]) => [name, id])),
    async close() {
      away?.cancel();
      for (const server of inProcessServers) server.close();
      await Promise.all([rest.close(), actions.close(), control.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns a route whose answers have the planned faults of this simulation. */
function changed(route: Route<CallFault>, state: GithubState): Route<CallFault> {
  return {
    ...route,
    async handle(context) {
      const answer: Answer = await route.handle(context);
      if (faultOf(context, 'empty') !== undefined) return { status: answer.status };
      if (!state.settings.byteOrderMark || answer.body === undefined) return answer;
      return { ...answer, body: `\uFEFF${JSON.stringify(answer.body)}` };
    },
  };
}
