/** Serves all services at one URL: determines the service and the caller for each handler. */

import {
  ApiError,
  type Answer,
  type CloudCall as AnyCloudCall,
  type RequestContext,
  type Route as ServedRoute,
  type VendorForm,
} from '@nodepool/simulated-cloud';
import type { OpenStackState } from '../cloud-state.js';
import type { CallFault, CloudCall } from '../faults.js';
import type { Lag } from '../table.js';
import { newUuid } from '../text.js';
import type { Caller, OpenStackRequest, Route, Service } from './request-context.js';

type Context = RequestContext<CallFault>;

export class Services {
  private readonly services: ReadonlyMap<string, Service>;

  constructor(
    private readonly state: OpenStackState,
    services: readonly Service[],
    /** Returns the caller of a token, or undefined if the token is invalid. */
    private readonly callerOf: (token: string) => Caller | undefined,
  ) {
    this.services = new Map(services.map((service) => [service.name, service]));
  }

  readonly form: VendorForm<CallFault> = {
    jsonType: 'application/json',
    noRoute: (context, pathExists) => {
      const service = this.serviceOf(context);
      if (service === undefined) return this.noService();
      return this.caller(context) === undefined ? service.unauthorized() : service.noRoute(pathExists);
    },
    fault: ({ status, body }, context) => {
      const answer =
        status === 401
          ? this.serviceOf(context)?.unauthorized()
          : this.serviceOf(context)?.failure(status, 'an injected fault of the simulated cloud');
      return { ...(answer ?? this.noService()), ...(body === undefined ? {} : { body }) };
    },
    failure: (status, message) => ({ status, type: 'text/plain', body: message }),
    headers: (context) => ({
      'X-Openstack-Request-Id': `req-${newUuid(this.state.random)}`,
      // uWSGI, which runs keystone, does not keep connections open.
      ...(this.serviceOf(context)?.name === 'identity' ? { Connection: 'close' } : {}),
    }),
  };

  routes(): readonly ServedRoute<CallFault>[] {
    return [...this.services.values()].flatMap((service) =>
      service.routes.map((route) => ({
        operation: `${service.name}.${route.operation}`,
        method: route.method,
        path: `/${service.name}${route.path}`,
        streams: route.streams === true,
        handle: (context: Context) => this.answer(service, route, context),
      })),
    );
  }

  describe(call: AnyCloudCall, context: Context): CloudCall {
    const service = this.serviceOf(context)?.name;
    const operation = context.operation ?? (service === undefined ? 'unknown' : `${service}.unknown`);
    const { pathname, search } = context.url;
    const project = this.caller(context)?.projectName;
    return { ...call, service, operation, path: belowService(pathname) + search, project };
  }

  private async answer(service: Service, route: Route, context: Context): Promise<Answer> {
    const { faults, url } = context;
    const serviceUrl = `${this.state.url}/${service.name}`;
    const request: OpenStackRequest = { ...context, serviceUrl, path: belowService(url.pathname), lag: lagOf(faults) };
    if (route.public === true) return route.handle(request);
    const caller = this.caller(context);
    if (caller === undefined) return service.unauthorized();
    const headers = service.common?.(request) ?? {};
    const answer = await orApiError(async () => route.handle({ ...request, caller }));
    return truncated({ ...answer, headers: { ...headers, ...answer.headers } }, faults);
  }

  private serviceOf({ url }: Context): Service | undefined {
    const [, name = ''] = url.pathname.split('/');
    return this.services.get(name);
  }

  private caller({ headers }: Context): Caller | undefined {
    const token = headers['x-auth-token'];
    return this.callerOf(typeof token === 'string' ? token : '');
  }

  private noService(): Answer {
    const names = [...this.services.keys()].map((name) => `/${name}`).join(', ');
    return { status: 404, type: 'text/plain', body: `no such service; the services are: ${names}\n` };
  }
}

function belowService(pathname: string): string {
  return `/${pathname.split('/').slice(2).join('/')}`;
}

/** Returns the answer of a handler, whether returned or thrown. */
async function orApiError(work: () => Promise<Answer>): Promise<Answer> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError) return error.answer;
    throw error;
  }
}

function lagOf(faults: readonly CallFault[]): Lag {
  const lags = faults.filter((fault) => fault.kind === 'lag');
  return {
    lacksNewestMs: Math.max(0, ...lags.map(({ lacksNewestMs }) => lacksNewestMs ?? 0)),
    showsDeletedMs: Math.max(0, ...lags.map(({ showsDeletedMs }) => showsDeletedMs ?? 0)),
  };
}

/** Truncates a listing without a link to the next page if a fault requires it. */
function truncated(answer: Answer, faults: readonly CallFault[]): Answer {
  const fault = faults.find(({ kind }) => kind === 'truncate');
  const { status, body } = answer;
  if (fault?.kind !== 'truncate' || status !== 200 || typeof body !== 'object' || body === null) return answer;
  const listing = Object.entries(body)
    .filter(([key]) => !key.endsWith('_links') && key !== 'next')
    .map(([key, value]): [string, unknown] => [key, Array.isArray(value) ? value.slice(0, fault.to) : value]);
  return { ...answer, body: Object.fromEntries(listing) };
}
