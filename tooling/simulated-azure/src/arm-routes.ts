/** Serves the routes of all services: checks tokens, limits and the published definitions around their handlers. */

import type { JsonObject } from '@nodepool/core';
import { jsonObjectIn, type Answer, type RequestContext, type Route, type VendorForm } from '@nodepool/simulated-cloud';
import { ArmError, malformed } from './api-error.js';
import type { Cloud } from './cloud.js';
import type { CallFault } from './faults.js';
import type { Login } from './login.js';
import type { AzureContext, AzureRoute } from './request-context.js';
import { ACCOUNT } from './settings.js';

const MINUTE_MS = 60_000;

type Context = RequestContext<CallFault>;

export class ArmRoutes {
  private minute = { startedAt: 0, calls: 0 };
  private answers = 0;

  constructor(
    private readonly cloud: Cloud,
    private readonly login: Login,
  ) {}

  readonly form: VendorForm<CallFault> = {
    jsonType: 'application/json; charset=utf-8',
    noRoute: (context) => {
      this.admit(context);
      const { method, url } = context;
      throw new ArmError(404, 'InvalidResourceType', `There is nothing at ${method} ${url.pathname}.`);
    },
    fault: ({ status, code, message = 'an injected fault of the simulated cloud' }, { operation }) =>
      operation?.startsWith('login.') === true
        ? { status, body: { error: code, error_description: message } }
        : new ArmError(status, code, message).answer,
    failure: (status, message) => new ArmError(status, 'SimulationFailed', message).answer,
    headers: () => {
      this.answers += 1;
      return { 'x-ms-request-id': String(this.answers) };
    },
  };

  served(route: AzureRoute): Route<CallFault> {
    const { operation, method, path } = route;
    return {
      ...{ operation, method, path },
      handle: (context) => {
        if (route.open !== true) this.admit(context);
        if (path.startsWith('/subscriptions/')) checkVersion(context);
        return answerOf(route, checked(route, context));
      },
    };
  }

  /** Throws unless the token is valid and the limit of calls is not exceeded. */
  private admit({ headers }: Context): void {
    if (!this.login.isValid(headers.authorization)) {
      throw new ArmError(401, 'InvalidAuthenticationToken', 'The access token is invalid.');
    }
    const waitSeconds = this.overLimit();
    if (waitSeconds === 0) return;
    const message = 'The number of requests has exceeded the limit. Please try again later.';
    throw new ArmError(429, 'TooManyRequests', message, { 'Retry-After': String(waitSeconds) });
  }

  /** Counts a call. Returns the seconds to wait; 0 if the limit is not exceeded. */
  private overLimit(): number {
    const now = this.cloud.clock.monotonic();
    if (now - this.minute.startedAt >= MINUTE_MS) this.minute = { startedAt: now, calls: 0 };
    this.minute.calls += 1;
    if (this.minute.calls <= this.cloud.settings.callsPerMinute) return 0;
    return Math.ceil((this.minute.startedAt + MINUTE_MS - now) / 1000);
  }
}

function checkVersion({ query }: Context): void {
  if (query.has('api-version')) return;
  const message = 'The api-version query parameter (?api-version=) is required for all requests.';
  throw new ArmError(400, 'MissingApiVersionParameter', message);
}

/** Throws an `ArmError` unless path, query and body conform to the published definition. */
function checked({ published, path }: AzureRoute, context: Context): AzureContext {
  const { params, query, body } = context;
  const values = Object.values(params);
  if (published === undefined) {
    const own = path.startsWith('/subscriptions/') ? values.slice(1) : values;
    return { ...context, params: own, json: () => jsonObjectIn(context, malformed) };
  }
  const { definitions, name } = published;
  const problem =
    definitions.parameterProblem(name, 'url', new Map(Object.entries(params))) ??
    definitions.parameterProblem(name, 'query', new Map(query));
  if (problem !== undefined) throw new ArmError(400, 'InvalidParameter', `The request is invalid: ${problem}.`);
  const [subscription = '', ...rest] = values;
  if (params['subscriptionId'] !== ACCOUNT.subscriptionId) {
    throw new ArmError(404, 'SubscriptionNotFound', `The subscription '${subscription}' could not be found.`);
  }
  const content: JsonObject | undefined = body.length === 0 ? undefined : jsonObjectIn(context, malformed);
  const wrong = definitions.requestProblem(name, content);
  if (wrong !== undefined) {
    throw new ArmError(400, 'InvalidRequestContent', `The request content was invalid: ${wrong}.`);
  }
  return { ...context, params: rest, json: () => content ?? {} };
}

/** An answer that does not conform to Microsoft's definitions is a defect of the simulation. */
function answerOf({ published, operation, handle }: AzureRoute, context: AzureContext): Answer {
  const answer = handle(context);
  const problem = published?.definitions.answerProblem(published.name, answer.status, answer.body);
  if (problem === undefined) return answer;
  throw new Error(`the simulation would answer ${operation} as Azure does not: ${problem}`);
}
