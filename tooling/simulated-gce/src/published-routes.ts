/** Serves published methods: checks credentials, limits and the published definitions around the handlers. */

import { routePath, type Answer, type Route, type VendorForm } from '@nodepool/simulated-cloud';
import { GceError, invalid, notFoundAt } from './api-error.js';
import type { GceState } from './cloud-state.js';
import type { Api, Definitions } from './definitions.js';
import type { CallFault, GceContext } from './faults.js';
import type { PublishedRoute } from './routes.js';
import { TOKEN_PATH, type Tokens } from './tokens.js';

const WINDOW_MS = 1000;

export class PublishedRoutes {
  private recent: number[] = [];

  constructor(
    private readonly state: GceState,
    private readonly definitions: Readonly<Record<Api, Definitions>>,
    private readonly tokens: Tokens,
  ) {}

  /** Returns the routes of the methods and of the token endpoint. */
  serve(routes: readonly PublishedRoute[]): readonly Route<CallFault>[] {
    return [
      {
        operation: 'token',
        method: 'POST',
        path: TOKEN_PATH,
        handle: ({ body }) => this.tokens.grant(body.toString('utf8')),
      },
      ...routes.map((route) => this.served(route)),
    ];
  }

  readonly form: VendorForm<CallFault> = {
    jsonType: 'application/json; charset=UTF-8',
    noRoute: ({ headers, url }) => {
      this.tokens.check(headers.authorization);
      throw notFoundAt(url.pathname);
    },
    fault: ({ status, reason = 'backendError', message = 'an injected fault of the simulated cloud' }) =>
      new GceError(status, reason, message).answer,
    failure: (status, message) => new GceError(status, 'backendError', message).answer,
  };

  private served(route: PublishedRoute): Route<CallFault> {
    const { httpMethod, path, uploadPath } = this.definitions[route.api].method(route.operation);
    const { upload } = route;
    return {
      operation: upload?.name ?? route.operation,
      method: upload?.httpMethod ?? httpMethod,
      path: routePath(upload === undefined ? path : (uploadPath ?? path).replace('/resumable/', '/')),
      handle: async (context) => {
        this.tokens.check(context.headers.authorization);
        if (route.api === 'compute') this.limit();
        this.checkRequest(route, context);
        return this.checked(route, await route.handle(context));
      },
    };
  }

  private checkRequest({ api, operation, upload }: PublishedRoute, { params, query, body }: GceContext): void {
    const definitions = this.definitions[api];
    const { request } = definitions.method(operation);
    // The upload session replaces the parameters of its method.
    const isPartOfUpload = upload !== undefined && upload.httpMethod !== 'POST';
    const problem =
      definitions.problemWithParameters(operation, params, 'path') ??
      (isPartOfUpload ? undefined : definitions.problemWithParameters(operation, parametersIn(query), 'query')) ??
      (isPartOfUpload || request === undefined ? undefined : problemWithBody(definitions, request, body));
    if (problem !== undefined) throw invalid(problem);
  }

  /** An answer that does not conform to Google's definitions is a defect of the simulation. */
  private checked({ api, operation }: PublishedRoute, answer: Answer): Answer {
    const definitions = this.definitions[api];
    const { response } = definitions.method(operation);
    if (response === undefined || answer.body === undefined) return answer;
    const problem = definitions.problemWith(answer.body, response);
    if (problem !== undefined) throw new Error(`the answer to ${operation} is not as published: ${problem}`);
    return answer;
  }

  private limit(): void {
    const { clock, settings } = this.state;
    if (settings.callsPerSecond === Infinity) return;
    const now = clock.monotonic();
    this.recent = this.recent.filter((at) => at > now - WINDOW_MS);
    if (this.recent.length >= settings.callsPerSecond) {
      throw new GceError(403, 'rateLimitExceeded', 'Rate Limit Exceeded', 'usageLimits');
    }
    this.recent.push(now);
  }
}

/** Throws for a repeated parameter, and for a partial answer, which the simulation does not support. */
function parametersIn(query: URLSearchParams): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  for (const [name, value] of query) {
    if (name in parameters) throw invalid(`Parameter "${name}" is given twice`);
    if (name === 'fields') throw invalid('Partial answers (fields) are not simulated');
    parameters[name] = value;
  }
  return parameters;
}

function problemWithBody(definitions: Definitions, type: string, body: Buffer): string | undefined {
  const problem = definitions.problemWith(jsonIn(body), type);
  return problem === undefined ? undefined : `Invalid JSON payload received: ${problem}`;
}

function jsonIn(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8')) as unknown;
  } catch {
    throw invalid('Invalid JSON payload received');
  }
}
