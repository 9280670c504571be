/** Drivers that violate the rules about the client of the API. */

import {
  AuthError,
  DriverError,
  InstanceFailedError,
  RateLimiter,
  ThrottledError,
  TimeoutError,
  TransientError,
} from '@nodepool/core';
import { when } from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const clientDefects: Readonly<Record<string, Defect>> = {
  'client.queue': {
    changes: {
      client: ({ create }, { clock }) => {
        const limiter = new RateLimiter(clock, 0.1);
        return {
          create: async (tags, zone, image, call) => {
            await limiter.acquire(call.signal);
            if (clock.monotonic() > call.deadline)
              throw new TimeoutError('acme: no answer', { outcome: 'not-applied' });
            return create(tags, zone, image, call);
          },
        };
      },
    },
    says: /at a low rate failed/,
  },
  'client.credentials': {
    changes: {
      client: ({ page }, cloud) => ({
        page: async (from, call) => {
          if (cloud.hasNewCredentials) throw new AuthError('acme: the password of the start is refused');
          return page(from, call);
        },
      }),
    },
    says: /a list after the credentials were replaced/,
  },
  'client.redirect-within': {
    changes: {
      client: ({ create }, cloud) => ({
        create: async (...args) => {
          if (cloud.isMoved) throw new InstanceFailedError('acme: status 301');
          return create(...args);
        },
      }),
    },
    says: /status 301/,
  },
  'client.redirect-away': {
    changes: {
      client: ({ describe }, cloud) => ({
        describe: async (call) => {
          if (cloud.redirectsTo !== '') await fetch(cloud.redirectsTo.replace('localhost', '127.0.0.1'));
          return describe(call);
        },
      }),
    },
    says: /requests to another host/,
  },
  'client.redirect-status': {
    changes: { explain: when('redirect-status', new InstanceFailedError('acme: status 303')) },
    says: /instance-failed/,
  },
  'client.endless': {
    changes: { explain: when('endless', new DriverError('unexpected', 'acme: the heap is full')) },
    says: /"unexpected"/,
  },
  'client.retry-date': {
    changes: { explain: when('throttle', new ThrottledError('acme: slow down', { retryAfterMs: 60_000 })) },
    says: /the driver reports 60000 ms/,
  },
  'client.message': {
    changes: { explain: when('echo', new TransientError('acme: a proxy answered')) },
    says: /lacks "acme\.example"/,
  },
};
