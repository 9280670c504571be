/** HTTP interface for tests and people that control the simulated GitHub or inspect it. */

import type { JsonObject } from '@nodepool/core';
import {
  ApiError,
  CallLog,
  CloudServer,
  CloudState,
  FaultPlan,
  jsonObjectIn,
  type Answer,
  type CallFault as ControlFault,
  type RequestContext,
  type Route,
  type VendorForm,
} from '@nodepool/simulated-cloud';
import { faultRuleIn, jobRequestIn, messageFaultRuleIn, settingsIn } from './control-input.js';
import { PAGE } from './page.js';
import type { GithubState } from './settings.js';
import type { SimulatedGithub } from './api.js';
import { checked } from './strict.js';

/** Members of the simulation that the interface uses. */
export type Controls = Omit<
  SimulatedGithub,
  | 'url'
  | 'fetch'
  | 'actionsUrl'
  | 'controlUrl'
  | 'clientId'
  | 'appId'
  | 'installations'
  | 'appKeyFile'
  | 'tokenFile'
  | 'runner'
  | 'close'
>;

export interface Control {
  readonly url: string;
  close(): Promise<void>;
}

/** Maximum number of jobs in one call. */
const MAX_JOBS = 10_000;
const MAX_AWAY_S = 3600;

const form: VendorForm<ControlFault> = {
  jsonType: 'application/json',
  noRoute: (_context, pathExists) => ({ status: pathExists ? 405 : 404, body: { message: 'There is no such call' } }),
  fault: ({ status }) => ({ status }),
  failure: (status, message) => ({ status, body: { message } }),
};

/** Starts the control interface. It has no faults and no latency of its own. */
export async function startControl(state: GithubState, controls: Controls, port: number): Promise<Control> {
  const server = new CloudServer({
    state: new CloudState({ clock: state.clock, random: state.random }, { latencyMs: 0 }),
    form,
    faults: new FaultPlan<ControlFault>(state.random),
    calls: new CallLog(),
    routes: [...viewRoutes(state, controls), ...actionRoutes(state, controls)],
    describe: (call) => call,
  });
  const url = `http://127.0.0.1:${await server.listen(port)}`;
  return { url, close: () => server.close() };
}

function viewRoutes(state: GithubState, { inspect, calls }: Controls): readonly Route<ControlFault>[] {
  const view = (path: string, content: () => unknown): Route<ControlFault> => ({
    operation: `view${path}`,
    method: 'GET',
    path,
    handle: () => ({ status: 200, body: content() }),
  });
  return [
    { ...view('/', () => PAGE), handle: () => ({ status: 200, body: PAGE, type: 'text/html; charset=utf-8' }) },
    view('/jobs', () => inspect.jobs()),
    view('/runners', () => inspect.runners()),
    view('/scale-sets', () => inspect.scaleSets()),
    view('/events', () => inspect.events()),
    view('/calls', () => calls.byOperation()),
    view('/settings', () => state.settings),
  ];
}

function actionRoutes(state: GithubState, controls: Controls): readonly Route<ControlFault>[] {
  const { faults, messageFaults } = controls;
  const action = (method: string, path: string, perform: (context: RequestContext) => Answer): Route<ControlFault> => ({
    operation: `${method} ${path}`,
    method,
    path,
    handle(context) {
      try {
        return perform(context);
      } catch (error) {
        if (error instanceof ApiError) throw error;
        throw refused(error instanceof Error ? error.message : String(error));
      }
    },
  });
  return [
    action('POST', '/jobs', (context) => {
      const { count = 1, ...fields } = bodyOf(context);
      const request = jobRequestIn(fields);
      if (typeof count !== 'number' || !(count >= 1 && count <= MAX_JOBS)) throw refused(`"count" is 1 to ${MAX_JOBS}`);
      const numbers = Array.from({ length: count }, () => controls.queueJob(request));
      return { status: 201, body: { numbers } };
    }),
    action('POST', '/jobs/:number/cancel', ({ params }) => found(controls.cancelJob(Number(params['number'])))),
    action('POST', '/runners/:name/remove', ({ params }) => found(controls.removeRunner(params['name'] ?? ''))),
    action('POST', '/scale-sets/:name/lose-session', ({ params }) => found(controls.loseSession(params['name'] ?? ''))),
    action('POST', '/runner-groups', (context) => {
      const fields = { scope: 'string', name: 'string', 'repositories?': 'array' } as const;
      const { scope, name, repositories } = checked(bodyOf(context), fields, refused);
      const texts = repositories?.filter((repository) => typeof repository === 'string');
      return { status: 201, body: { id: controls.addRunnerGroup(scope, name, texts) } };
    }),
    action('PATCH', '/settings', (context) => {
      controls.configure(settingsIn(bodyOf(context)));
      return { status: 200, body: state.settings };
    }),
    action('POST', '/faults', (context) => {
      faults.add(faultRuleIn(bodyOf(context)));
      return { status: 201 };
    }),
    action('POST', '/message-faults', (context) => {
      messageFaults.add(messageFaultRuleIn(bodyOf(context)));
      return { status: 201 };
    }),
    action('DELETE', '/faults', () => {
      faults.clear();
      messageFaults.clear();
      return { status: 204 };
    }),
    action('POST', '/revoke', (context) => {
      const { kind } = checked(bodyOf(context), { kind: 'string' }, refused);
      if (kind !== 'installation' && kind !== 'admin' && kind !== 'queue') {
        throw refused('"kind" is "installation", "admin" or "queue"');
      }
      controls.revokeTokens(kind);
      return { status: 204 };
    }),
    action('POST', '/away', (context) => {
      const { seconds } = checked(bodyOf(context), { seconds: 'integer' }, refused);
      if (seconds < 1 || seconds > MAX_AWAY_S) throw refused(`"seconds" is 1 to ${MAX_AWAY_S}`);
      controls.goAway(seconds * 1000);
      return { status: 202 };
    }),
  ];
}

function bodyOf(context: RequestContext): JsonObject {
  return jsonObjectIn(context, () => refused('The body is not a JSON object'));
}

function found(isFound: boolean): Answer {
  return isFound ? { status: 204 } : { status: 404, body: { message: 'It does not exist' } };
}

function refused(message: string): ApiError {
  return new ApiError({ status: 400, body: { message } }, message);
}
