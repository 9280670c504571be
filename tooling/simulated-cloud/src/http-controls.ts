/** The controls of a simulated cloud that the driver contract needs for its rules about HTTP. */

import type { Clock } from '@nodepool/core';
import type { CloudCall } from './calls.js';
import type { CallFault, FaultRule, StatusFault } from './faults.js';

type HttpFault<E extends object> = Extract<CallFault, { readonly kind: 'redirect' | 'endless' }> | StatusFault<E>;
type On<C extends CloudCall> = FaultRule<CallFault, C>['on'];

export interface HttpControlsOptions<C extends CloudCall, E extends object> {
  readonly url: string;
  readonly clock: Clock;
  readonly faults: { add(rule: FaultRule<HttpFault<E>, C>): unknown };
  readonly configure: (settings: { readonly clockAheadMs: number }) => void;
  /** The calls that can fail, and those that create an instance. */
  readonly any: On<C>;
  readonly create: On<C>;
  /** The answer to a throttled call, without its `Retry-After`. */
  readonly throttled: StatusFault<E>;
}

/** The `HttpControls` of the driver kit. */
export interface HttpControls {
  readonly host: string;
  moveCalls(status: number): void;
  redirectTo(url: string): void;
  redirectCreations(status: number): void;
  answerEndlessly(): void;
  throttleUntil(waitMs: number, aheadMs: number): void;
}

export function httpControls<C extends CloudCall, E extends object>(options: HttpControlsOptions<C, E>): HttpControls {
  const { url, clock, faults, configure, any, create, throttled } = options;
  const toItself = ({ pathname, search }: URL): string => pathname + search;
  return {
    host: new URL(url).host,
    moveCalls(status: number): void {
      const moved = new Set<string>();
      const on = ({ method, path }: C): boolean => {
        const call = `${method} ${path}`;
        // The second message of a call is served.
        if (moved.delete(call)) return false;
        moved.add(call);
        return true;
      };
      faults.add({ on, times: Infinity, fault: { kind: 'redirect', status, to: toItself } });
    },
    redirectTo(to: string): void {
      faults.add({ on: '*', times: Infinity, fault: { kind: 'redirect', status: 302, to } });
    },
    redirectCreations(status: number): void {
      faults.add({ on: create, times: Infinity, fault: { kind: 'redirect', status, to: toItself } });
    },
    answerEndlessly(): void {
      faults.add({ on: any, fault: { kind: 'endless' } });
    },
    throttleUntil(waitMs: number, clockAheadMs: number): void {
      configure({ clockAheadMs });
      const retryAfter = new Date(clock.now() + clockAheadMs + waitMs).toUTCString();
      faults.add({ on: any, fault: { ...throttled, retryAfter } });
    },
  };
}
